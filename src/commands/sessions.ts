/** `sessions`: lists and closes sessions through the ops listener of a running gateway. */
import { loadConfig } from '../config/load.ts'
import type { describeSession } from '../session/describe.ts'
import type { Command } from './command.ts'

const usage = `Usage: console-gateway sessions list USER-ID [--json]
       console-gateway sessions close USER-ID [SESSION-ID]
       console-gateway sessions close --everyone
`

export const sessions: Command = {
  summary: 'list USER-ID, close USER-ID [SESSION-ID], or close --everyone',
  run: async ({ config: folder, rest: [what, user, id], everyone, json }) => {
    const isList = what === 'list' && user !== undefined && !everyone
    const isClose = what === 'close' && (user !== undefined) !== everyone
    if (!isList && !isClose) {
      process.stderr.write(usage)
      return 2
    }
    const base = `http://${loadConfig(folder, process.env).gateway.ops.listen.replace(/^0\.0\.0\.0:/, '127.0.0.1:').replace(/^\[::\]:/, '[::1]:')}`
    const answer = await ask(isList
      ? [`${base}/sessions?user=${encodeURIComponent(user ?? '')}`, {}]
      : [`${base}/sessions/close`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(everyone ? { everyone: true } : { user, ...(id !== undefined && { id }) }) }])
    if (typeof answer === 'string') {
      process.stderr.write(`${answer}\n`)
      return 1
    }
    process.stdout.write(json ? `${JSON.stringify(answer, null, 2)}\n` : isList ? table(answer['sessions'] as Listed[]) : `closed: ${String(answer['closed'])}\n`)
    return 0
  }
}

type Listed = ReturnType<typeof describeSession>

/** @returns the answer, or what to tell the operator */
async function ask ([url, init]: [string, RequestInit]): Promise<Record<string, unknown> | string> {
  try {
    const answer = await fetch(url, init)
    const body = await answer.json() as Record<string, unknown>
    return answer.ok ? body : `The gateway answered ${answer.status}: ${String(body['error'])}`
  } catch (error) {
    return `No gateway answers on ${new URL(url).host}: ${error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error)}. Is it running with this config (--config DIR)?`
  }
}

function table (listed: readonly Listed[]): string {
  if (listed.length === 0) return 'no sessions\n'
  const rows = [['SESSION', 'STARTED', 'LAST USED', 'ADDRESS', 'AGENT'], ...listed.map(({ id, startedAt, lastUsedAt, address, agent }) => [id, startedAt, lastUsedAt, address, agent.slice(0, 60)])]
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0))) ?? []
  return rows.map(row => `${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ').trimEnd()}\n`).join('')
}

