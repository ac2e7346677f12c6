/** A gateway in a process of its own, and the sessions of its users. */
import type { Test } from 'tap'
import { callOnce } from './call.ts'
import { configFolder, type Files, password } from './gateway.ts'
import { startGatewayProcess } from './gateway-process.ts'
import { cookieIn } from './sign-in.ts'

interface ProcessOptions {
  readonly environment?: Record<string, string>
  /** A module that its process loads first. */
  readonly preload?: string
}

/** Starts one that is ready. */
export async function readyProcess(t: Test, files: Files, options: ProcessOptions = {}) {
  const folder = await configFolder(files)
  const gateway = await startGatewayProcess(t.after, { folder, ...options })
  await gateway.ready()
  const signIn = async () => {
    const json = { username: 'alice', password }
    const answer = await callOnce(`${gateway.url}/api/auth/admin/login`, { json })
    return cookieIn(answer.headers['set-cookie'])
  }
  const call = async (path: string, cookie: string, method = 'GET') => {
    const answer = await fetch(gateway.url + path, { method, headers: { cookie } })
    await answer.arrayBuffer()
    return answer
  }
  return { gateway, signIn, call }
}
