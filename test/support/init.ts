/** Runs of `init`, and a gateway on the folder that it wrote. */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { runCli } from '../../src/cli/main.ts'
import { run } from './command.ts'
import { cookieIn } from './sign-in.ts'
import { temporaryFolder } from './temporary.ts'
import { until } from './until.ts'
import { testGateway, type TestGateway } from './gateway.ts'

type CleanUp = (undo: () => unknown) => void

/** A folder that does not exist yet. */
export function newFolder(cleanUp: CleanUp): string {
  const place = temporaryFolder()
  cleanUp(() => rmSync(place, { recursive: true, force: true }))
  return join(place, 'config')
}

/** Runs `init` without a terminal. `everything` is all that was printed and written, but for JSON Schemas. */
export async function runInit(cleanUp: CleanUp, words: readonly string[], password: string) {
  const folder = newFolder(cleanUp)
  const ran = await run(['init', folder, ...words, '--yes'], { input: `${password}\n` })
  const files = existsSync(folder) ? readdirSync(folder, { withFileTypes: true }) : []
  const texts = files
    .filter(entry => entry.isFile())
    .map(({ name }) => readFileSync(join(folder, name), 'utf8'))
  return { ...ran, folder, everything: [ran.out, ran.err, ...texts].join('\n') }
}

/** Runs `init` at a terminal that answers each question, one after the other. */
export async function askedInit(
  folder: string,
  words: readonly string[],
  answers: ReadonlyArray<readonly [question: string, answer: string]>
): Promise<{ readonly code: number; readonly shown: string }> {
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => {} })
  const stdout = Object.assign(new PassThrough(), { columns: 100 })
  let shown = ''
  stdout.on('data', (chunk: Buffer) => {
    shown += chunk.toString()
  })
  const done = runCli(['init', folder, ...words], { env: {}, stdin, stdout, stderr: stdout })
  let from = 0
  for (const [question, answer] of answers) {
    await until(`init asks "${question}"`, () => shown.includes(question, from))
    from = shown.length
    // A question for yes or no takes a key.
    stdin.write(answer === 'y' ? answer : `${answer}\r`)
  }
  return { code: await done, shown }
}

/** A gateway on what was written. */
export async function gatewayOn(cleanUp: CleanUp, folder: string): Promise<TestGateway> {
  return await testGateway(cleanUp, folder, { LISTEN: '127.0.0.1:0', OPS_LISTEN: '127.0.0.1:0' })
}

/** Signs in as a console does, and gets a path. */
export async function signInAndGet(
  gateway: TestGateway,
  { username, password }: { readonly username: string; readonly password: string },
  path: string
) {
  const signedIn = await gateway.attempt(username, { password })
  const cookie = cookieIn(signedIn.headers.getSetCookie())
  const list = await gateway.call(path, { cookie })
  return { status: signedIn.status, list: list.json, cookie }
}
