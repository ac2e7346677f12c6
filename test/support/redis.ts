/** A Redis of its own for a test: a real redis-server on a free port, nothing kept on disk. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { freePort } from './ports.ts'
import { temporaryFolder } from './temporary.ts'

export interface TestRedis {
  readonly url: string
  readonly port: number
  /** SIGKILL: gone at once, with all it knew. */
  readonly kill: () => Promise<void>
  /** Starts again on the same port, after `kill`. */
  readonly start: () => Promise<void>
  readonly signal: (signal: NodeJS.Signals) => void
}

/** Options as arguments of redis-server. */
export const flags = (options: Readonly<Record<string, string | number>>): string[] =>
  Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)])

/**
 * @param extra further arguments for redis-server
 * @param given a port; a free one without it
 * @param program of another kind of Redis
 */
export async function testRedis(
  cleanUp: (undo: () => unknown) => void,
  extra: readonly string[] = [],
  given?: number,
  [command = '', ...before]: readonly string[] = ['redis-server']
): Promise<TestRedis> {
  // A folder of its own: whatever another Redis left behind would be loaded.
  const folder = temporaryFolder()
  let port = given ?? (await freePort())
  let child: ChildProcess | undefined
  const start = async () => {
    const options = { port, bind: '127.0.0.1', save: '', appendonly: 'no', dir: folder }
    const started = spawn(command, [...before, ...flags(options), ...extra], {
      stdio: ['ignore', 'pipe', 'inherit']
    })
    child = started
    const lines = createInterface({ input: started.stdout })
    let ready = false
    for await (const line of lines) {
      if (line.includes('Ready to accept connections')) {
        ready = true
        break
      }
    }
    started.stdout.resume()
    return ready
  }
  const restart = async () => {
    if (!(await start())) throw new Error(`redis-server did not start on port ${port}`)
  }
  const kill = async () => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGCONT')
    child.kill('SIGKILL')
    await gone
  }
  // Another test may have taken the port between asking for a free one and using it.
  for (let tries = 0; !(await start()); tries++) {
    if (tries === 5 || given !== undefined) throw new Error('redis-server did not start')
    port = await freePort()
  }
  cleanUp(kill)
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    kill,
    start: restart,
    signal: signal => {
      child?.kill(signal)
    }
  }
}
