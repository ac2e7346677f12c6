/** The place of a command's ledger: its folder, its keys, and the stored heads. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { loadConfig } from '../../config/load/load.ts'
import type { Config } from '../../config/schema/config.ts'
import { usesRedis } from '../../config/schema/gateway.ts'
import type { StoredHead } from '../../observability/audit/chain-report.ts'
import { headFiles, type HeadStore, readHead } from '../../observability/audit/head.ts'
import { type AuditKey, auditKeys } from '../../observability/audit/line.ts'
import { redisHeads } from '../../services/audit-heads.ts'
import { createRedisDialler } from '../../services/redis.ts'
import { CommandError, type Invocation, UsageError } from '../command.ts'

export interface LedgerPlace {
  readonly folder: string
  readonly keys: readonly AuditKey[]
  readonly headOf: (chain: string) => Promise<StoredHead>
  /** Empty where they cannot be asked: the head of each chain then says so. */
  readonly chainsWithHead: () => Promise<readonly string[]>
  readonly close: () => void
}

const none = async () => []

/** @throws CommandError, UsageError, ConfigError */
export function placeOf({ config: folder, values, io }: Invocation): LedgerPlace {
  const { 'folder': named, 'key-file': keyFile } = values
  if ((named === undefined) !== (keyFile === undefined)) {
    throw new UsageError('Give --folder and --key-file together.')
  }
  if (typeof named === 'string' && typeof keyFile === 'string') {
    return placeOfFiles(named, auditKeys(readKeys(keyFile)))
  }
  return configuredPlace(loadConfig(folder, io.env))
}

function close(): void {}

/** Without Redis: the heads stand beside the files. */
function placeOfFiles(folder: string, keys: readonly AuditKey[]): LedgerPlace {
  const headOf = readHeads(keys, headFiles(folder), 'beside')
  return { folder, keys, headOf, chainsWithHead: none, close }
}

function configuredPlace({ gateway, folder }: Config): LedgerPlace {
  const { audit, redis } = gateway
  if (audit === undefined) {
    throw new CommandError('gateway.yaml has no audit ledger: there is no section `audit`.')
  }
  const keys = auditKeys(audit.key)
  const place = resolve(folder, audit.folder)
  if (redis === undefined || !usesRedis(gateway)) return placeOfFiles(place, keys)
  let disconnect = close
  const connect = () => {
    const dialler = createRedisDialler(redis, folder)
    const client = dialler.client({ onUp: close, onDown: close })
    disconnect = () => {
      client.disconnect()
      dialler.close()
    }
    return redisHeads(async () => client, redis.prefix)
  }
  let heads: HeadStore | undefined
  const read: HeadStore['read'] = chain => (heads ??= connect()).read(chain)
  return {
    folder: place,
    keys,
    headOf: readHeads(keys, { read }, 'redis'),
    chainsWithHead: async () => await ((heads ??= connect()).chains?.() ?? none()).catch(none),
    close: () => disconnect()
  }
}

function readHeads(
  keys: readonly AuditKey[],
  heads: Pick<HeadStore, 'read'>,
  from: 'redis' | 'beside'
): LedgerPlace['headOf'] {
  return async chain => {
    const where = from === 'redis' ? 'Redis' : 'the folder'
    try {
      const text = await heads.read(chain)
      if (text === undefined) return { from: 'none', reason: `${where} holds no head` }
      const position = readHead(chain, text, keys)
      if (position !== undefined) return { from, position }
      return { from: 'none', reason: `the head in ${where} was not signed with this key` }
    } catch (error) {
      return { from: 'none', reason: `${where} cannot be asked: ${(error as Error).message}` }
    }
  }
}

function readKeys(file: string): string[] {
  try {
    const keys = readFileSync(file, 'utf8').split('\n')
    return keys.map(key => key.trim()).filter(key => key !== '')
  } catch (error) {
    throw new CommandError(`${file} cannot be read: ${(error as Error).message}`)
  }
}

/** @returns what a file system says, in a message for the operator */
export function readingFailed(folder: string, error: unknown): CommandError {
  const { code } = error as NodeJS.ErrnoException
  const advice = code === 'ENOENT' ? ' The ledger has not begun, or the folder is another.' : ''
  return new CommandError(`${folder} cannot be read (${code ?? String(error)}).${advice}`)
}
