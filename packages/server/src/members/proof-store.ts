import type { Sql } from '../sql.ts'

/** Notes that the member of a sign-in, by its id or its token, has proved who they are. */
export async function noteProof(
  sql: Sql,
  signIn: { id: string } | { token: string },
): Promise<void> {
  const { id = null, token = null } = signIn as { id?: string; token?: string }
  await sql`
    update auth.sign_ins
    set proven_at = app_now()
    where id = ${id}::uuid or token = ${token}`
}

export async function isProvenWithin(
  sql: Sql,
  signInId: string,
  seconds: number,
): Promise<boolean> {
  const [row] = await sql<{ isProven: boolean }>`
    select proven_at > app_now() - ${seconds} * interval '1 second' as "isProven"
    from auth.sign_ins
    where id = ${signInId}`
  return row?.isProven ?? false
}
