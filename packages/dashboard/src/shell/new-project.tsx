import { createProject } from '@lethe/contract/dashboard-projects.ts'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useSending } from '../api/action.ts'
import { projectsQuery } from '../api/projects.ts'
import { Button } from '../design/button.tsx'
import { Dialog } from '../design/dialog.tsx'
import { DialogForm } from '../design/dialog-form.tsx'
import { TextField } from '../design/field.tsx'
import { keepFreshKey } from '../install/fresh-key.ts'

export function NewProject() {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button look="primary" icon="plus" onClick={() => setOpen(true)}>
        New project
      </Button>
      <NewProjectDialog isOpen={isOpen} onClose={() => setOpen(false)} />
    </>
  )
}

/** Makes a project and goes on to its installation, where its first secret key is shown. */
export function NewProjectDialog({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const queryClient = useQueryClient()
  const navigate = useNavigate()
  const [name, setName] = useState('')
  const send = useSending()
  const making = useMutation({
    mutationFn: () => send(createProject, { body: { name } }),
    onSuccess: async ({ project, secretKey }) => {
      keepFreshKey(project.id, secretKey)
      await queryClient.invalidateQueries(projectsQuery)
      onClose()
      setName('')
      await navigate({ to: '/projects/$projectId/install', params: { projectId: project.id } })
    },
  })
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title="New project"
      description="Use one project per application, and another for its test system. People, recordings and keys are kept separate."
    >
      <DialogForm
        action="Create project"
        doing={making}
        onSubmit={() => making.mutate()}
        onClose={onClose}
      >
        <TextField
          label="Name"
          value={name}
          onChange={(event) => setName(event.target.value)}
          required
          maxLength={200}
          autoComplete="off"
          placeholder="Web shop"
        />
      </DialogForm>
    </Dialog>
  )
}
