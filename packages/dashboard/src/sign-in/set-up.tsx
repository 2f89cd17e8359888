import { setUp } from '@lethe/contract/dashboard-members.ts'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { basePath } from '../api/base-path.ts'
import { send } from '../api/call.ts'
import { meQuery } from '../api/me.ts'
import { TextField } from '../design/field.tsx'
import { Form } from '../design/form.tsx'
import { keepFreshKey } from '../install/fresh-key.ts'
import { EmailField, NameField, PasswordField } from './fields.tsx'
import { DeadEnd, SignInFrame } from './frame.tsx'
import { WithLink } from './link.tsx'

/** The first run: the owner's account and the first project. */
export function SetUp() {
  return (
    <WithLink kind="set_up" whenMissing={<WhereIsTheLink />}>
      {({ token, projectName }) => <SetUpForm token={token} projectAtFirst={projectName ?? ''} />}
    </WithLink>
  )
}

function WhereIsTheLink() {
  const { data } = useQuery(meQuery)
  if (data && !data.isSetUpNeeded) {
    return <DeadEnd title="Lethe is set up" description="This installation already has an owner." />
  }
  return (
    <SignInFrame
      title="Welcome to Lethe"
      description={
        <>
          This installation has no owner yet. Open the set-up link that the service printed when it
          started. It begins with{' '}
          <code className="font-mono text-sm">
            {window.location.origin}
            {basePath}/setup#
          </code>
          .
        </>
      }
    >
      <p className="text-sm text-pretty text-muted">
        The link works once. The service prints a new one at each start until there is an owner.
      </p>
    </SignInFrame>
  )
}

function SetUpForm({ token, projectAtFirst }: { token: string; projectAtFirst: string }) {
  const queryClient = useQueryClient()
  const navigate = useNavigate()
  const [name, setName] = useState('')
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const [projectName, setProjectName] = useState(projectAtFirst)
  const settingUp = useMutation({
    mutationFn: () => send(setUp, { body: { token, name, email, password, projectName } }),
    onSuccess: async ({ project, secretKey }) => {
      if (secretKey) keepFreshKey(project.id, secretKey)
      queryClient.removeQueries()
      await navigate({ to: '/projects/$projectId/install', params: { projectId: project.id } })
    },
  })
  return (
    <SignInFrame
      title="Set up Lethe"
      description="Create the owner account and your first project. It takes a minute."
    >
      <Form action="Continue" doing={settingUp} onSubmit={() => settingUp.mutate()}>
        <NameField value={name} onChange={setName} />
        <EmailField value={email} onChange={setEmail} />
        <PasswordField value={password} onChange={setPassword} />
        <TextField
          label="Project name"
          hint="The application you record. You can change the name later."
          required
          maxLength={200}
          autoComplete="off"
          placeholder="Web shop"
          value={projectName}
          onChange={(event) => setProjectName(event.target.value)}
        />
      </Form>
    </SignInFrame>
  )
}
