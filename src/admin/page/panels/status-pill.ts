/** The status of a request, with its error code. */
import { type ComponentChildren, h } from 'preact'
import type { RequestRow } from '../api-types.ts'
import { t } from '../words.ts'
import { Pill } from '../ui/pill.ts'

export function StatusPill({ row }: { readonly row: RequestRow }): ComponentChildren {
  return h(Pill, { tone: toneOf(row), text: textOf(row), title: row.code })
}

function textOf({ status, isCut = false }: RequestRow): string {
  return isCut ? `${status} ${t('requests.cut')}` : String(status)
}

function toneOf(row: RequestRow): 'ok' | 'warn' | 'bad' | 'plain' {
  const { status, isCut = false, code } = row
  if (status >= 500 || isCut) return 'bad'
  if (status >= 400 || code !== undefined) return 'warn'
  return status >= 300 ? 'plain' : 'ok'
}
