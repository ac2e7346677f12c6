/** The command line: within the test, or as people and orchestrators run it, as a process of its own. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { Readable, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import './temporary.ts'
import { until } from './until.ts'

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

/** What every command runs with. None compiles what another has compiled already. */
const environment = (env: RunOptions['env'] = {}): Record<string, string> => ({
  // Some servers are where only administrators look.
  PATH: `${process.env['PATH']}:/usr/sbin`,
  TMPDIR: tmpdir(),
  // Where a gateway within a test has its socket for commands.
  RUNTIME_DIRECTORY: tmpdir(),
  NODE_COMPILE_CACHE: 'node_modules/.cache/compiled',
  ...env
})

/** Runs a command within the test, to its end. `start` changes its process, so it needs one of its own. */
export async function run(words: readonly string[], { input = '', env }: RunOptions = {}) {
  const written = { out: '', err: '' }
  const collect = (name: 'out' | 'err') =>
    new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        written[name] += chunk.toString()
        done()
      }
    })
  // Not before it is needed: a server of a test loads this module, too.
  const { runCli } = await import('../../src/cli/main.ts')
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
) {
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

/** Of what a process writes for hours. */
const keptLetters = 20_000_000

function outputOf(child: ChildProcessWithoutNullStreams, name: string) {
  let written = ''
  let complaints = ''
  let over = false
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      written += chunk
      if (written.length > 2 * keptLetters) written = written.slice(-keptLetters)
      if (stream === child.stderr) complaints += chunk
    })
  }
  child.once('close', () => {
    over = true
  })
  return {
    /** Waits for output that holds `part`, and gives all of it; rejects if the process ends first. */
    says: async (part: string) => {
      await until(`${name} prints "${part}"`, () => written.includes(part) || over)
      if (!written.includes(part)) throw new Error(`${name} ended without "${part}":\n${written}`)
      return written
    },
    written: () => written,
    /** The lines of standard error: warnings of Node, stacks. */
    complaints: () => complaints.split('\n').slice(0, -1),
    isOver: () => over
  }
}

export type Running = ReturnType<typeof running>

/** Starts a program that serves, or asks; both its outputs count as one. */
export function running(
  cleanUp: (undo: () => unknown) => void,
  executable: string,
  words: readonly string[],
  env: RunOptions['env'] = {}
) {
  const child = spawn(executable, words, { stdio: 'pipe', env: environment(env) })
  const output = outputOf(child, 'the command')
  const { says, written } = output
  cleanUp(() => {
    child.kill('SIGKILL')
    const isMade = words.some(word => word.includes('fault-on-'))
    if (isMade || !written().includes('"event":"process.uncaught"')) return
    throw new Error(`an error that nothing caught:\n${written()}`)
  })
  const ended = once(child, 'close').then(([code, signal]) => {
    return { code: code as number | null, signal: signal as NodeJS.Signals | null }
  })
  const signal = (name: NodeJS.Signals) => void child.kill(name)
  return {
    ...output,
    pid: child.pid ?? 0,
    /** Resolves with the addresses of a gateway, once it says that it listens. */
    listens: async () => {
      const [, url = '', opsUrl = ''] =
        /"url":"([^"]+)","ops":"([^"]+)"/.exec(await says('"listening on ')) ?? []
      return { url, opsUrl }
    },
    type: (typed: string) => void child.stdin.write(typed),
    signal,
    /** SIGKILL. */
    kill: async () => {
      signal('SIGKILL')
      await ended
    },
    /** SIGTERM. @returns how it ended */
    stop: async () => {
      signal('SIGTERM')
      return await ended
    },
    ended
  }
}

/** Starts a line of a shell in a process group that ends with the test. Its outputs are one. */
export function runningLine(
  cleanUp: (undo: () => unknown) => void,
  line: string,
  options: { readonly cwd?: string; readonly env: NodeJS.ProcessEnv }
) {
  const child = spawn('sh', ['-c', `exec 2>&1; ${line}`], { ...options, detached: true })
  const { pid = 0 } = child
  const { says, written, isOver } = outputOf(child, line)
  cleanUp(async () => {
    try {
      process.kill(-pid, 'SIGTERM')
    } catch {
      // All of the group have ended.
    }
    await until(`"${line}" ends`, isOver)
  })
  return { child, pid, says, written }
}
