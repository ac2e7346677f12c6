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
export function placeOf({ config: folder, values }: Invocation): LedgerPlace {
  const { 'folder': named, 'key-file': keyFile } = values
  if ((named === undefined) !== (keyFile === undefined)) {
    throw new UsageError('Give --folder and --key-file together.')
  }
  if (typeof named === 'string' && typeof keyFile === 'string') {
    const keys = auditKeys(readKeys(keyFile))
    return {
      folder: named,
      keys,
      headOf: headOf(keys, headFiles(named), 'beside'),
      chainsWithHead: none,
      close
    }
  }
  return configuredPlace(loadConfig(folder, process.env))
}

function close(): void {}

function configuredPlace({ gateway, folder }: Config): LedgerPlace {
  const { audit, redis } = gateway
  if (audit === undefined) {
    throw new CommandError('gateway.yaml has no audit ledger: there is no section `audit`.')
  }
  const keys = auditKeys(audit.key)
  const place = resolve(folder, audit.folder)
  if (redis === undefined || !usesRedis(gateway)) {
    return {
      folder: place,
      keys,
      headOf: headOf(keys, headFiles(place), 'beside'),
      chainsWithHead: none,
      close
    }
  }
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
  const ofRedis: HeadStore = {
    read: chain => (heads ??= connect()).read(chain),
    write: async () => {}
  }
  return {
    folder: place,
    keys,
    headOf: headOf(keys, ofRedis, 'redis'),
    chainsWithHead: async () => await ((heads ??= connect()).chains?.() ?? none()).catch(none),
    close: () => disconnect()
  }
}

function headOf(keys: readonly AuditKey[], heads: HeadStore, from: 'redis' | 'beside') {
  return async (chain: string): Promise<StoredHead> => {
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
