/** The newest lines of the ledger that fit a filter: searched once, then followed by a stream. */
import { useEffect, useState } from 'preact/hooks'
import { type Asked, useJson } from '../api.ts'
import type { AuditAnswer, AuditRow } from '../api-types.ts'
import { pauseWhileHidden } from '../hidden-tab.ts'
import { plainText } from '../plain-text.ts'

export interface LedgerFilter {
  readonly kind: string
  readonly user: string
  readonly requestId: string
}

const maxLines = 500
/** The stream does not say whether lines can be written. */
const statusMs = 15_000
const retryMs = 3000

export const keyOfLine = ({ chain, line }: AuditRow): string => `${chain} ${plainText(line['seq'])}`

const timeOf = ({ line }: AuditRow): number => Date.parse(plainText(line['at']))

/** Lines of the stream. */
interface Streamed {
  /** Those that came before the last search was answered: the next one has read them. */
  readonly before: readonly AuditRow[]
  readonly since: readonly AuditRow[]
}

const nothing: Streamed = { before: [], since: [] }

/** The stream says what was written, a search what the files hold now: the search is believed. */
export function useLedgerLines(filter: LedgerFilter): Asked<AuditAnswer> {
  const query = queryOf(filter)
  const asked = useJson<AuditAnswer>(`audit?last=${maxLines}&${query}`, statusMs)
  const [{ before, since }, setStreamed] = useState(nothing)
  const { data, reload } = asked
  useEffect(() => {
    setStreamed(nothing)
    const add = (row: AuditRow) =>
      setStreamed(rows => ({ ...rows, since: [...rows.since, row].slice(-maxLines) }))
    return follow(query, add, reload)
  }, [query, reload])
  useEffect(() => setStreamed(rows => ({ before: rows.since, since: [] })), [data])
  if (data === undefined) return asked
  const lines = new Map(data.lines.map(row => [keyOfLine(row), row]))
  for (const row of [...before, ...since]) {
    const key = keyOfLine(row)
    if (!lines.has(key)) lines.set(key, row)
  }
  // The search reads the chains of all processes that share the folder, the stream one chain.
  const sorted = [...lines.values()].toSorted((a, b) => timeOf(a) - timeOf(b))
  return { ...asked, data: { ...data, lines: sorted.slice(-maxLines) } }
}

function queryOf({ kind, user, requestId }: LedgerFilter): string {
  const query = new URLSearchParams()
  if (kind !== '') query.set('kind', kind)
  if (user !== '') query.set('user', user)
  if (requestId !== '') query.set('requestId', requestId)
  return query.toString()
}

/**
 * @param search finds the lines that were written while no stream was open
 * @returns what ends it
 */
function follow(query: string, add: (row: AuditRow) => void, search: () => void): () => void {
  let source: EventSource | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  const connect = () => {
    source = new EventSource(`/ops/api/audit/stream?${query}`)
    source.addEventListener('open', search)
    source.addEventListener('missed', search)
    source.addEventListener('line', ({ data }) => add(JSON.parse(String(data)) as AuditRow))
    source.addEventListener('error', () => {
      // Browsers connect again by themselves, but not after a refusal.
      if (source?.readyState === EventSource.CLOSED) timer = setTimeout(connect, retryMs)
    })
  }
  const disconnect = () => {
    source?.close()
    clearTimeout(timer)
  }
  connect()
  const stopPauses = pauseWhileHidden(disconnect, connect)
  return () => {
    stopPauses()
    disconnect()
  }
}
