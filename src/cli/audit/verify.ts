/** `audit verify`: prints what is wrong with the ledger, by file and line. */
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { loadConfig } from '../../config/read/load.ts'
import type { Config } from '../../config/schema/config.ts'
import { usesRedis } from '../../config/schema/gateway.ts'
import { auditKey, chainOf } from '../../observability/audit/line.ts'
import { type Head, type Report, Verification } from '../../observability/audit/verify.ts'
import { printable } from '../../observability/unprintable.ts'
import { readHeads } from '../../services/audit.ts'
import { createRedisDialler, slotPrefix } from '../../services/redis.ts'
import { CommandError, type Invocation, UsageError } from '../command.ts'
import { jsonText } from '../output.ts'

type Heads = Readonly<Record<string, Head>>

interface Place {
  /** Of the files; undefined for lines that went to standard output. */
  readonly folder: string | undefined
  readonly keys: readonly string[]
  /** Undefined where there is no Redis. @throws where it cannot be asked */
  readonly heads: (() => Promise<Heads>) | undefined
}

/** Longer is not waited for Redis. */
const readyMs = 1500
const withHeads = 'held against the heads in Redis'
const withoutHeads =
  'without Redis nothing shows whether the newest file was cut or deleted; all others are named by ' +
  'those after them'

interface Values {
  readonly folder?: string
  readonly keyFile?: string
  readonly collected?: readonly string[]
}

export async function audit(invocation: Invocation<Values>): Promise<number> {
  const { values, json, io } = invocation
  const place = placeOf(invocation)
  const { collected } = values
  const files = collected ?? filesIn(place.folder)
  const { heads, fault } = await headsOf(place)
  const isCollected = collected !== undefined
  const keys = place.keys.map(auditKey)
  const verification = new Verification({ files, isCollected, keys, heads })
  const report = await verification.run().catch((error: unknown) => {
    throw unreadable(error)
  })
  const code = codeOf(report, fault)
  const end = fault ?? (place.heads === undefined ? withoutHeads : withHeads)
  if (json) io.stdout.write(jsonText({ files, verified: code, ...report, end }))
  else io.stdout.write(inWords(report, files.length, end))
  return code
}

/** 1: not as it was written. 3: something cannot be shown. */
function codeOf({ findings, lost, lines }: Report, fault: string | undefined): number {
  const severities = new Set(findings.map(({ severity }) => severity))
  if (severities.has('fault')) return 1
  return severities.has('warning') || lost > 0 || lines === 0 || fault !== undefined ? 3 : 0
}

function inWords(report: Report, files: number, end: string): string {
  const { chains, lines, since = '', until = '', lost, findings } = report
  const isSound = findings.every(({ severity }) => severity !== 'fault')
  const of = `${lines} lines in ${chains} ${chains === 1 ? 'chain' : 'chains'}`
  const period = lines === 0 ? '' : `, ${since} to ${until}`
  const verdict = isSound ? 'as it was written' : 'NOT as it was written'
  return [
    lines === 0 && isSound
      ? `there is no line of a ledger in ${files} files`
      : `${verdict} (${of}${period})`,
    ...findings.map(
      ({ severity, file, line, message }) =>
        `  ${severity}: ${file}${line === undefined ? '' : `:${line}`}: ${printable(message)}`
    ),
    ...(lost > 0 ? [`  ${lost} entries were lost, as the ledger says`] : []),
    `  ends: ${printable(end)}`,
    ''
  ].join('\n')
}

async function headsOf({ heads }: Place): Promise<{ heads: Heads; fault?: string }> {
  try {
    return { heads: (await heads?.()) ?? {} }
  } catch (error) {
    return { heads: {}, fault: `not verified, since Redis cannot be asked: ${String(error)}` }
  }
}

/** @throws CommandError, UsageError, ConfigError */
function placeOf({ config: folder, values, io }: Invocation<Values>): Place {
  const { folder: named, keyFile, collected } = values
  if (named !== undefined && collected !== undefined) {
    throw new UsageError('Give --folder or --collected.')
  }
  if (keyFile !== undefined) {
    if (named === undefined && collected === undefined) {
      throw new UsageError('With --key-file give --folder or --collected.')
    }
    return { folder: named, keys: readKeys(keyFile), heads: undefined }
  }
  if (named !== undefined) throw new UsageError('With --folder give --key-file.')
  return configuredPlace(loadConfig(folder, io.env), collected !== undefined)
}

function configuredPlace({ gateway, folder }: Config, isCollected: boolean): Place {
  const { audit: config, redis } = gateway
  if (config === undefined) {
    throw new CommandError('gateway.yaml has no audit ledger: there is no section `audit`.')
  }
  if (config.to === 'stdout' && !isCollected) {
    throw new CommandError('The ledger goes to standard output: name the log by --collected FILE.')
  }
  const place = config.to === 'stdout' ? undefined : resolve(folder, config.folder)
  const heads = async () => {
    const dialler = createRedisDialler(redis as NonNullable<typeof redis>, folder)
    const client = dialler.client()
    try {
      await Promise.race([once(client, 'ready'), wait(readyMs, undefined, { ref: false })])
      const prefix = slotPrefix(redis?.prefix ?? '')
      return await readHeads({ redis: client, prefix, folder: place ?? 'stdout' })
    } finally {
      dialler.close()
    }
  }
  const hasRedis = redis !== undefined && usesRedis(gateway)
  return { folder: place, keys: config.key, heads: hasRedis ? heads : undefined }
}

function filesIn(folder: string | undefined): string[] {
  if (folder === undefined) return []
  try {
    const names = readdirSync(folder).filter(name => chainOf(name) !== undefined)
    return names.toSorted().map(name => join(folder, name))
  } catch (error) {
    throw unreadable(error)
  }
}

function readKeys(file: string): string[] {
  try {
    const keys = readFileSync(file, 'utf8').split('\n')
    return keys.map(key => key.trim()).filter(key => key !== '')
  } catch (error) {
    throw unreadable(error)
  }
}

function unreadable(error: unknown): CommandError {
  const { code, path = '' } = error as NodeJS.ErrnoException
  const advice = code === 'ENOENT' ? ' The ledger has not begun, or the place is another.' : ''
  return new CommandError(`${path} cannot be read (${code ?? String(error)}).${advice}`)
}
