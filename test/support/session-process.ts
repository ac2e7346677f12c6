/** A gateway in a process of its own, and the sessions of its users. */
import { join } from 'node:path'
import type { Test } from 'tap'
import { configFolder, password } from './gateway.ts'
import { opsSecret, startGatewayProcess } from './gateway-process.ts'
import { cookieIn } from './sign-in.ts'
import { until } from './until.ts'

const checkout = join(import.meta.dirname, '../..')

interface Options {
  /** The sections of gateway.yaml. */
  readonly redis: object
  readonly session?: object
  readonly environment?: Record<string, string>
  /** A module that its process loads first. */
  readonly preload?: string
}

export async function sessionProcess(t: Test, { redis, session, environment, ...more }: Options) {
  const folder = await configFolder({
    gateway: {
      redis,
      session: { secrets: ['${SESSION_SECRET}'], ...session },
      ops: { secret: '${OPS_SECRET}' }
    }
  })
  const gateway = await startGatewayProcess(t.after, {
    checkout,
    folder,
    environment: {
      SESSION_SECRET: 'a secret of at least thirty-two characters',
      OPS_SECRET: opsSecret,
      ...environment
    },
    ...more
  })
  await until('it is ready', async () => (await gateway.ask('/readyz')).status === 200)
  const call = async (path: string, cookie: string, method = 'GET') => {
    const answer = await fetch(gateway.url + path, { method, headers: { cookie } })
    await answer.arrayBuffer()
    return answer
  }
  const signIn = async () => {
    const answer = await fetch(`${gateway.url}/api/auth/admin/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ username: 'alice', password })
    })
    return cookieIn(answer.headers.getSetCookie())
  }
  return { call, signIn }
}
