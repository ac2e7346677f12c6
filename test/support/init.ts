/** Folders that `init` writes, and the first requests through them. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cookieIn } from './sign-in.ts'

/** A folder that does not exist yet. */
export function newFolder(cleanUp: (undo: () => unknown) => void): string {
  const place = mkdtempSync(join(tmpdir(), 'gateway-init-'))
  cleanUp(() => rmSync(place, { recursive: true, force: true }))
  return join(place, 'config')
}

/** The texts of all files of a folder. */
export function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
}

interface SignedIn {
  readonly status: number
  readonly list: Readonly<Record<string, unknown>>
  readonly profile: Readonly<Record<string, unknown>>
}

/** Signs in at a gateway as a console does; gets a path and the profile. */
export async function signInAndGet(
  url: string,
  credentials: Readonly<Record<string, string>>,
  path: string
): Promise<SignedIn> {
  const { status, headers } = await fetch(`${url}/api/auth/admin/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(credentials)
  })
  const cookie = cookieIn(headers.getSetCookie())
  const get = async (target: string) => {
    const response = await fetch(url + target, { headers: { cookie } })
    return (await response.json()) as Readonly<Record<string, unknown>>
  }
  return { status, list: await get(path), profile: await get('/api/account/profile') }
}
