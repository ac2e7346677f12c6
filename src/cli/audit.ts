import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { loadConfig } from '../config/read/load.ts'
import type { Config } from '../config/schema/config.ts'
import { redisKeys } from '../config/schema/gateway.ts'
import { auditKey, chainOf } from '../observability/audit/line.ts'
import { type Report, Verification } from '../observability/audit/verify.ts'
import { chainHeads } from '../services/audit.ts'
import { createRedisDialler, slotPrefix } from '../services/redis.ts'
import { CommandError, type Invocation, UsageError } from './command.ts'

const alone = { heads: undefined, fault: undefined }
/** Longer is not waited for Redis. */
const readyMs = 1500
const withHeads = 'held against the heads in Redis'
const withoutHeads = 'without Redis nothing shows whether the newest file was cut or deleted'

interface Values {
  readonly folder?: string
  readonly keyFile?: string
  readonly collected?: readonly string[]
}

export async function audit({ configs, values, io }: Invocation<Values>) {
  const { folder, keyFile, collected } = values
  const isElsewhere = (folder ?? keyFile) !== undefined
  const isComplete = keyFile !== undefined && (folder === undefined) !== (collected === undefined)
  if (isElsewhere && !isComplete) {
    throw new UsageError('Elsewhere give --key-file, and --folder or --collected.')
  }
  try {
    const { files, keys, heads, fault } =
      keyFile === undefined
        ? await ledgerOf(loadConfig(configs, io.env), collected)
        : { files: collected ?? filesIn(folder ?? ''), keys: linesOf(keyFile), ...alone }
    const isCollected = collected !== undefined
    const options = { files, isCollected, keys: keys.map(auditKey), heads: heads ?? {} }
    const report = await new Verification(options).run()
    const code = codeOf(report, fault)
    const end = fault ?? (heads === undefined ? withoutHeads : withHeads)
    const json = { files, verified: code, ...report, end }
    return { json, text: reportText(report, files.length, end), code }
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException
    if (path === undefined) throw error
    const advice = code === 'ENOENT' ? ' The ledger has not begun, or the place is another.' : ''
    throw new CommandError(`${path} cannot be read (${code}).${advice}`)
  }
}

/** 1: not as it was written. 3: something cannot be shown. */
function codeOf({ findings, lost, lines }: Report, fault: string | undefined): number {
  const severities = new Set(findings.map(({ severity }) => severity))
  if (severities.has('fault')) return 1
  return severities.has('warning') || lost > 0 || lines === 0 || fault !== undefined ? 3 : 0
}

function reportText(report: Report, files: number, end: string): string {
  const { chains, lines, since = '', until = '', lost, findings } = report
  const isSound = findings.every(({ severity }) => severity !== 'fault')
  const of = `${lines} lines in ${chains} ${chains === 1 ? 'chain' : 'chains'}`
  const period = lines === 0 ? '' : `, ${since} to ${until}`
  const verdict = isSound ? 'as it was written' : 'NOT as it was written'
  const isEmpty = lines === 0 && isSound
  return [
    isEmpty ? `there is no line of a ledger in ${files} files` : `${verdict} (${of}${period})`,
    ...findings.map(({ severity, file, line, message }) => {
      const place = line === undefined ? file : `${file}:${line}`
      return `  ${severity}: ${place}: ${message}`
    }),
    ...(lost > 0 ? [`  ${lost} entries were lost, as the ledger says`] : []),
    `  ends: ${end}`
  ].join('\n')
}

async function ledgerOf({ gateway, folder }: Config, collected: Values['collected']) {
  const { audit: config, redis } = gateway
  if (config === undefined) {
    throw new CommandError('gateway.yaml has no audit ledger: there is no section `audit`.')
  }
  if (config.to === 'stdout' && collected === undefined) {
    throw new CommandError('The ledger goes to standard output: name the log by --collected FILE.')
  }
  const place = config.to === 'stdout' ? config.to : resolve(folder, config.folder)
  const ledger = { files: collected ?? filesIn(place), keys: config.key, ...alone }
  if (redis === undefined || redisKeys(gateway).length === 0) return ledger
  const dialler = createRedisDialler(redis)
  try {
    const client = dialler.client()
    await Promise.race([once(client, 'ready'), wait(readyMs, undefined, { ref: false })])
    const heads = chainHeads(client, slotPrefix(redis.prefix), place)
    return { ...ledger, heads: await heads.read() }
  } catch (error) {
    return { ...ledger, fault: `not verified, since Redis cannot be asked: ${String(error)}` }
  } finally {
    dialler.close()
  }
}

function filesIn(folder: string): string[] {
  const names = readdirSync(folder).filter(name => chainOf(name) !== undefined)
  return names.toSorted().map(name => join(folder, name))
}

function linesOf(file: string): string[] {
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.map(line => line.trim()).filter(line => line !== '')
}
