/** The Unix socket by which commands on this machine ask a gateway: its place, on both sides. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, lstatSync, mkdirSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { connect, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { adopt } from '../observability/emitters.ts'

type Environment = Readonly<Record<string, string | undefined>>

const isWindows = process.platform === 'win32'
const pipes = '\\\\.\\pipe\\'
const uid = process.getuid?.() ?? 0
/** Anybody can make a folder in the temporary one: the name says whose it has to be. */
const temporaryName = `console-gateway-${uid}`
const nameOfSocket = /^console-gateway-([0-9a-f]{8})-([0-9a-f]{8})\.sock$/

/** The folders for sockets: a gateway uses the first that it can. @param configured `ops.socket` */
export function socketFolders(configured: string | undefined, environment: Environment): string[] {
  if (isWindows) return [pipes]
  if (configured !== undefined) return [configured]
  const { RUNTIME_DIRECTORY = '', XDG_RUNTIME_DIR: runtime = `/run/user/${uid}` } = environment
  const [ofSystemd = ''] = RUNTIME_DIRECTORY.split(':')
  return [
    ...(ofSystemd === '' ? [] : [ofSystemd]),
    '/run/console-gateway',
    join(runtime, 'console-gateway'),
    join(environment['TMPDIR'] ?? tmpdir(), temporaryName)
  ]
}

/** @returns the path, in the first folder that can be the process's own @throws where none can */
export async function listenLocally(
  server: Server,
  folders: readonly string[],
  { config, replica }: { readonly config: string; readonly replica: string }
): Promise<string> {
  const name = `console-gateway-${digestOf(config)}-${replica.slice(-8)}.sock`
  const errors: unknown[] = []
  for (const folder of folders) {
    const file = join(folder, name)
    try {
      if (!isWindows) await takeFolder(folder)
      server.listen(file)
      await once(server, 'listening')
      if (!isWindows) chmodSync(file, 0o600)
      return file
    } catch (error) {
      errors.push(error)
    }
  }
  throw errors.at(-1)
}

/** Makes a folder this user's alone, and removes the sockets of processes that were killed. */
async function takeFolder(folder: string): Promise<void> {
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const stat = lstatSync(folder)
  if (!stat.isDirectory() || stat.uid !== uid) throw new Error(`${folder} is not this user's`)
  const names = readdirSync(folder)
  const sockets = names.filter(name => nameOfSocket.test(name))
  if ((stat.mode & 0o077) !== 0) {
    // Such as /run: whoever needs the others could not reach them any more.
    if (sockets.length < names.length) throw new Error(`${folder} is open, and holds other files`)
    chmodSync(folder, 0o700)
  }
  for (const name of sockets) {
    const file = join(folder, name)
    if ((await knock(file)) === 'ECONNREFUSED') rmSync(file, { force: true })
  }
}

/**
 * @param config its folder; all without it
 * @param folders of `socketFolders`; those of other systemd units are looked into, too
 */
export async function findGateways(
  folders: readonly string[],
  config: string | undefined
): Promise<Array<{ readonly socketPath: string; readonly id: string }>> {
  const units = isWindows ? [] : namesIn('/run').filter(name => name.startsWith('console-gateway'))
  const all = new Set([...folders, ...units.map(name => join('/run', name))])
  const found: Awaited<ReturnType<typeof findGateways>> = []
  for (const folder of all) {
    if (!isTrusted(folder)) continue
    for (const name of namesIn(folder)) {
      const [, digest, id = ''] = nameOfSocket.exec(name) ?? []
      if (digest === undefined || (config !== undefined && digest !== digestOf(config))) continue
      const socketPath = join(folder, name)
      if ((await knock(socketPath)) === undefined) found.push({ socketPath, id })
    }
  }
  return found
}

function digestOf(config: string): string {
  return createHash('sha256')
    .update(realpathSync(resolve(config)))
    .digest('hex')
    .slice(0, 8)
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** Only a folder of this user, closed to others; for root those of others, too. */
function isTrusted(folder: string): boolean {
  if (isWindows) return true
  const stat = lstatSync(folder, { throwIfNoEntry: false })
  if (stat?.isDirectory() !== true || (stat.mode & 0o077) !== 0) return false
  return stat.uid === uid || (uid === 0 && !folder.endsWith(temporaryName))
}

/** @returns the code of the error, if nobody answers */
function knock(file: string): Promise<string | undefined> {
  return new Promise(resolved => {
    const socket = adopt(connect(file), error => resolved((error as NodeJS.ErrnoException).code))
    socket.on('connect', () => {
      socket.destroy()
      resolved(undefined)
    })
  })
}
