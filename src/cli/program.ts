/** The command line of this process, as it was typed: a restart runs it again. */
import { readFileSync, realpathSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import type { Program } from '../process/restart/successor.ts'

interface Started {
  /** For service managers, which follow the main process by it. */
  readonly pidFile: string | undefined
  /** Why the program that has started the gateway allows no restart. */
  readonly refusal?: string | undefined
  /** Whether a restart has started this process: its parent, which ends, is no supervisor. */
  readonly isSuccessor: boolean
}

/**
 * To be called at the start. Symbolic links stay as they were typed: where one leads to another
 * version later, a restart runs that one.
 */
export function programOf(started: Started): Program {
  const { argv, pid, ppid, env } = process
  const [, script = '', ...words] = argv
  return {
    executable: executable(),
    words: [...process.execArgv, script, ...words],
    folder: process.cwd(),
    refusal: started.refusal ?? refusalOf(started, { pid, ppid, env, init: nameOfInit() })
  }
}

/** `process.execPath` has its links resolved. */
function executable(): string {
  const { argv0, execPath, env } = process
  const places = argv0.includes('/')
    ? [resolve(argv0)]
    : (env['PATH'] ?? '').split(delimiter).map(folder => join(folder, argv0))
  return places.find(place => leadsTo(place, execPath)) ?? execPath
}

function leadsTo(place: string, target: string): boolean {
  try {
    return realpathSync(place) === target
  } catch {
    return false
  }
}

const inContainer =
  'the container ends with this process, so it cannot be replaced within. ' +
  'Replace the container: a rolling update starts the new one first'

const needsPidFile =
  'the service manager would stop the service with this process. ' +
  'Start it with --pid-file FILE, and set PIDFile=FILE in the unit of systemd'

interface Surroundings {
  readonly pid: number
  readonly ppid: number
  readonly env: Readonly<Record<string, string | undefined>>
  /** The name of process 1. */
  readonly init: string
}

/** Names of process 1 outside containers. */
const managers = new Set(['systemd', 'init', 'launchd'])

export function refusalOf(
  { pidFile, isSuccessor }: Started,
  { pid, ppid, env, init }: Surroundings
): string | undefined {
  if (pid === 1) return `this is process 1: ${inContainer}`
  if (isSuccessor) return undefined
  // The parent may be a wrapper, such as npm, with which the service ends.
  const isOfSystemd = [pid, ppid].some(id => env['SYSTEMD_EXEC_PID'] === String(id))
  const isManaged = isOfSystemd || (ppid === 1 && managers.has(init))
  if (isManaged) return pidFile === undefined ? needsPidFile : undefined
  return ppid === 1 ? `it was started by process 1 (${init}): ${inContainer}` : undefined
}

function nameOfInit(): string {
  try {
    return readFileSync('/proc/1/comm', 'utf8').trim()
  } catch {
    return 'init'
  }
}
