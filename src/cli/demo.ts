import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createBackend } from '../../examples/backend/server.ts'
import { reasonOf } from '../config/schema/faults.ts'
import type { Invocation } from './command.ts'
import { serve } from './start.ts'

const isBuilt = !import.meta.url.endsWith('.ts')
const root = fileURLToPath(new URL(isBuilt ? 'demo/' : '../../', import.meta.url))
const linkMs = 3_600_000
const shownLength = 110

/** As people on this machine reach it: a container listens on all its addresses. */
const local = (url: string) => url.replace('//0.0.0.0:', '//127.0.0.1:')

const shortened = (text: string) =>
  text.length > shownLength ? `${text.slice(0, shownLength)}…` : text

export async function demo({ io }: Invocation) {
  const folder = mkdtempSync(join(tmpdir(), 'console-gateway-demo-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  cpSync(join(root, 'config'), folder, { recursive: true })
  const port = Number(io.env['BACKEND_PORT'] ?? 9001)
  let backend = createBackend({ port })
  const backendUrl = await backend.listen().catch(cannotListen)
  if (backendUrl === undefined) return { code: 1 }
  const { env } = process
  env['BACKEND_URL'] ??= backendUrl
  env['CONSOLE_ROOT'] ??= join(root, 'examples/console')
  // Users with this role may sign in to the operators' page, where only this machine reaches it.
  if (env['OPS_LISTEN']?.startsWith('0.0.0.0') !== true) env['OPS_ROLE'] ??= 'admin'
  const gateway = await serve([folder])
  if (gateway === undefined) {
    await backend.close()
    return { code: 1 }
  }
  const { before, after } = await exampleCall(backendUrl, local(gateway.url))
  io.stdout.write(`
  The console: ${local(gateway.url)}   admin or user, password ant.design
  1 The same call      GET /notices/list at the back-end:  ${before}
                       GET /api/notices at the gateway:    ${after}
  2 Operators' page    ${local(gateway.opsLink(linkMs))}
                       (good once, within an hour; \`console-gateway ops -c ${folder}\` prints another link)
  3 Change a limit     ${join(folder, 'limits.yaml')}: write "max: 3" at notices, save, wait five seconds,
                       and open the notices four times: refused. Write 30 again: they are back.
  4 Stop the back-end  press b and Enter here, and look at the console; b and Enter start it again.
  5 Why it was refused \`console-gateway why -c ${folder}\`, or Requests on the operators' page.
  Stop with Ctrl+C.

`)
  createInterface({ input: io.stdin }).on('line', line => {
    if (line.trim() !== 'b') return
    const isRunning = backend.server.listening
    io.stdout.write(`The back-end ${isRunning ? 'stops' : 'starts again'}.\n`)
    if (isRunning) return void backend.close()
    backend = createBackend({ port })
    void backend.listen().catch(cannotListen)
  })
  return {}
}

function cannotListen(error: unknown): undefined {
  const advice = 'set BACKEND_PORT to a free port'
  process.stderr.write(`The demo's back-end cannot listen (${reasonOf(error)}): ${advice}.\n`)
  return undefined
}

/** One call, as the back-end answers it, and as the console gets the answer. */
async function exampleCall(backend: string, gateway: string) {
  const asUser = { 'x-user-id': '2', 'x-user-name': 'user', 'x-user-roles': 'user' }
  const direct = await fetch(`${backend}/notices/list`, { headers: asUser })
  const signedIn = await fetch(`${gateway}/api/auth/admin/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'user', password: 'ant.design' })
  })
  const cookie = signedIn.headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
  const shaped = await fetch(`${gateway}/api/notices`, { headers: { cookie } })
  const [before, after] = await Promise.all([direct.text(), shaped.text()])
  await fetch(`${gateway}/api/account/logout`, { headers: { cookie } })
  return { before: shortened(before), after: shortened(after) }
}
