/** The command line: within the test, or as people and orchestrators run it, as a process of its own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Readable, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { runCli } from '../../src/cli/main.ts'
import { until } from './until.ts'

export interface Ran {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

interface RunOptions {
  readonly input?: string | Uint8Array
  readonly env?: Readonly<Record<string, string>>
}

interface ProcessOptions extends RunOptions {
  /** A full disk: a file takes so many blocks of 512 bytes. */
  readonly maxFileBlocks?: number
}

/**
 * Without the trap a signal would end the process. Nothing but the command may write files, so
 * nothing compiled is kept, and no module of tap is loaded, which writes one at the end.
 */
const limited =
  `trap '' XFSZ; ulimit -f "$1"; shift; unset NODE_OPTIONS; ` +
  'NODE_DISABLE_COMPILE_CACHE=1 exec "$@"'

/** Where programs are, and where a gateway within a test has its socket for commands. */
const passed = ['PATH', 'TMPDIR', 'RUNTIME_DIRECTORY']

/** What every command runs with. None compiles what another has compiled already. */
function environment(env: RunOptions['env'] = {}): Record<string, string> {
  const found = passed.flatMap(name => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value]]
  })
  return {
    ...(Object.fromEntries(found) as Record<string, string>),
    NODE_COMPILE_CACHE: 'node_modules/.cache/compiled',
    ...env
  }
}

/** Runs a command within the test, to its end. `start` changes its process, so it needs one of its own. */
export async function run(
  words: readonly string[],
  { input = '', env }: RunOptions = {}
): Promise<Ran> {
  const written = { out: '', err: '' }
  const collect = (name: 'out' | 'err') =>
    new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        written[name] += chunk.toString()
        done()
      }
    })
  const code = await runCli(words, {
    env: environment(env),
    stdin: Readable.from([Buffer.from(input)]),
    stdout: collect('out'),
    stderr: collect('err')
  })
  return { code, ...written }
}

/** `PROGRAM=dist/launch.js` runs what was built. */
export const program = process.env['PROGRAM'] ?? 'src/launch.js'

/** Runs a command as a process of its own, to its end. */
export async function runProcess(
  words: readonly string[],
  { input = '', env, maxFileBlocks }: ProcessOptions = {}
): Promise<Ran> {
  const prefix = maxFileBlocks === undefined ? [] : ['sh', '-c', limited, 'sh', `${maxFileBlocks}`]
  const [file = '', ...args] = [...prefix, process.execPath, program, ...words]
  const child = spawn(file, args, {
    stdio: 'pipe',
    env: environment(env)
  })
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>
  ])
  return { code, out, err }
}

export interface Running {
  /** Resolves with what was written so far, once it holds `part`; rejects when the process ends without it. */
  readonly says: (part: string) => Promise<string>
  /** Resolves with the addresses of a gateway, once it says that it listens. */
  readonly listens: () => Promise<{ readonly url: string; readonly opsUrl: string }>
  readonly type: (typed: string) => void
  readonly signal: (signal: NodeJS.Signals) => void
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
}

/** Starts a program that serves, or asks; both its outputs count as one. */
export function running(
  cleanUp: (undo: () => unknown) => void,
  executable: string,
  words: readonly string[],
  env: RunOptions['env'] = {}
): Running {
  const child = spawn(executable, words, { stdio: 'pipe', env: environment(env) })
  let written = ''
  cleanUp(() => {
    child.kill('SIGKILL')
    const isMade = env['NODE_OPTIONS']?.includes('fault-on-signal') === true
    if (isMade || !written.includes('"event":"process.uncaught"')) return
    throw new Error(`an error that nothing caught:\n${written}`)
  })
  let over = false
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      written += chunk
    })
  }
  const ended = once(child, 'close').then(([code, signal]) => {
    over = true
    return { code: code as number | null, signal: signal as NodeJS.Signals | null }
  })
  const says = async (part: string) => {
    await until(`the command prints "${part}"`, () => written.includes(part) || over)
    if (!written.includes(part)) throw new Error(`ended without saying "${part}":\n${written}`)
    return written
  }
  return {
    says,
    listens: async () => {
      const [, url = '', opsUrl = ''] =
        /"url":"([^"]+)","ops":"([^"]+)"/.exec(await says('"listening on ')) ?? []
      return { url, opsUrl }
    },
    type: typed => {
      child.stdin.write(typed)
    },
    signal: signal => {
      child.kill(signal)
    },
    ended
  }
}

export const start = (
  cleanUp: (undo: () => unknown) => void,
  folder: string,
  env?: RunOptions['env']
): Running => running(cleanUp, process.execPath, [program, 'start', '--config', folder], env)
