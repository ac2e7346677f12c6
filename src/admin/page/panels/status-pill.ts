/** The status of a request, with its error code. */
import { type ComponentChildren, h } from 'preact'
import type { RequestRow } from '../api-types.ts'
import { t } from '../i18n.ts'
import { Pill } from '../ui/pill.ts'

export function StatusPill({ row }: { readonly row: RequestRow }): ComponentChildren {
  const { status, isCut = false, code } = row
  const text = isCut ? `${status} ${t('requests.cut')}` : String(status)
  return h(Pill, { tone: toneOf(row), text, title: code })
}

function toneOf({ status, isCut = false, code }: RequestRow): 'ok' | 'warn' | 'bad' | 'plain' {
  if (status >= 500 || isCut) return 'bad'
  if (status >= 400 || code !== undefined) return 'warn'
  return status >= 300 ? 'plain' : 'ok'
}
