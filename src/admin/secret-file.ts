/** The file with a gateway's generated secret, for commands on the same machine. */
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface SecretFile {
  readonly file: string
  /** Deletes the file, unless another gateway has written its own secret there. */
  readonly remove: () => void
}

type Environment = Readonly<Record<string, string | undefined>>

/** The file is touched this often: systemd-tmpfiles deletes files after ten days without a use. */
const keepEveryMs = 3_600_000
const uid = process.getuid?.() ?? 0
/** A folder in a world-writable place has its owner's uid in its name: see `isTrusted`. */
const sharedName = /^console-gateway-(\d+)$/
const ownName = `console-gateway-${uid}`
const temporaryFolders = (environment: Environment) => [
  ...new Set([environment['TMPDIR'] ?? tmpdir(), '/tmp'])
]

/**
 * Writes the secret into the first folder that only this user can reach:
 * `$XDG_RUNTIME_DIR/console-gateway`, else `console-gateway-UID` in the temporary folder.
 * @param address the operators' listener, with its real port; at most one process listens there
 * @throws when no folder can be used
 */
export function writeSecretFile(address: string, secret: string): SecretFile {
  const { XDG_RUNTIME_DIR: runtime = '' } = process.env
  const folders = [
    ...(runtime === '' ? [] : [join(runtime, 'console-gateway')]),
    join(tmpdir(), ownName)
  ]
  const errors: unknown[] = []
  for (const folder of folders) {
    try {
      return writeInto(folder, address, secret)
    } catch (error) {
      errors.push(error)
    }
  }
  throw errors.at(-1)
}

function writeInto(folder: string, address: string, secret: string): SecretFile {
  const file = join(folder, fileName(address))
  const write = () => {
    makeFolder(folder)
    if (!isTrusted(folder, uid)) throw new Error(`${folder} is not this user's alone`)
    const unfinished = `${file}.${process.pid}`
    rmSync(unfinished, { force: true })
    writeFileSync(unfinished, secret, { flag: 'wx', mode: 0o600 })
    renameSync(unfinished, file)
  }
  write()
  const timer = setInterval(() => keep(file, write), keepEveryMs)
  timer.unref()
  return {
    file,
    remove: () => {
      clearInterval(timer)
      if (readIfThere(file) === secret) rmSync(file, { force: true })
    }
  }
}

/** Without its parents: nobody owns an `XDG_RUNTIME_DIR` that does not exist. */
function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** Touches the file, or writes it again. After a failure it is tried again an hour later. */
function keep(file: string, write: () => void): void {
  try {
    const now = new Date()
    utimesSync(file, now, now)
  } catch {
    try {
      write()
    } catch {}
  }
}

/**
 * The secrets of the gateway on this address, in files of this user, or for root of any user.
 * There are several when a gateway was killed and another user started the next one.
 */
export function readSecretFiles(address: string, environment: Environment = process.env): string[] {
  const { XDG_RUNTIME_DIR: runtime = `/run/user/${uid}` } = environment
  const ownFolders = [
    { folder: join(runtime, 'console-gateway'), owner: uid },
    { folder: `/run/user/${uid}/console-gateway`, owner: uid },
    ...temporaryFolders(environment).map(place => ({ folder: join(place, ownName), owner: uid }))
  ]
  const secrets = [...ownFolders, ...(uid === 0 ? foldersOfOthers(environment) : [])]
    .filter(({ folder, owner }) => isTrusted(folder, owner))
    .map(({ folder }) => readIfThere(join(folder, fileName(address))))
    .filter(secret => secret !== undefined)
  return [...new Set(secrets)]
}

function foldersOfOthers(
  environment: Environment
): Array<{ readonly folder: string; readonly owner: number }> {
  const inRun = namesIn('/run/user')
    .filter(name => /^\d+$/.test(name))
    .map(name => ({ folder: `/run/user/${name}/console-gateway`, owner: Number(name) }))
  const inTemporary = temporaryFolders(environment).flatMap(place =>
    namesIn(place).flatMap(name => {
      const owner = sharedName.exec(name)?.[1]
      return owner === undefined ? [] : [{ folder: join(place, name), owner: Number(owner) }]
    })
  )
  return [...inRun, ...inTemporary]
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** Anybody can make a folder in `/tmp`: only one of the owner, closed to others, is used. */
function isTrusted(folder: string, owner: number): boolean {
  const stat = lstatSync(folder, { throwIfNoEntry: false })
  return stat?.isDirectory() === true && stat.uid === owner && (stat.mode & 0o077) === 0
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

function fileName(address: string) {
  return `ops-${address.replaceAll(/[^A-Za-z0-9.-]/g, '_')}.secret`
}
