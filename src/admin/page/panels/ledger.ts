/** The panel Ledger: the newest lines of the audit ledger, and a search. */
import { type ComponentChildren, h } from 'preact'
import { useState } from 'preact/hooks'
import type { AuditAnswer, AuditRow } from '../api-types.ts'
import { formatTime } from '../format.ts'
import { t, word } from '../i18n.ts'
import { isolated, plainText } from '../plain-text.ts'
import { Card, Panel, Search, Select } from '../ui/layout.ts'
import { Pill, type Tone } from '../ui/pill.ts'
import { useSettled } from '../ui/settled.ts'
import { Shown } from '../ui/states.ts'
import { type Column, Table } from '../ui/table.ts'
import { keyOfLine, type LedgerFilter, useLedgerLines } from './ledger-lines.ts'

const kinds = [
  'act',
  'request',
  'sign-in',
  'sign-in.refused',
  'sign-out',
  'sessions.revoked',
  'config.reload',
  'config.rollback',
  'lost',
  'head'
] as const

/** The facts of lines that the ledger writes about itself. */
const ownFacts = ['state', 'head', 'foundAt', 'count', 'torn'] as const

export function LedgerPanel(): ComponentChildren {
  const [filter, setFilter] = useState<LedgerFilter>({ kind: '', user: '', requestId: '' })
  const asked = useLedgerLines(useSettled(filter))
  return h(
    Panel,
    { title: t('ledger.title'), tools: h(Filters, { filter, setFilter }) },
    h(
      Card,
      { title: t('ledger.newest'), count: asked.data?.lines.length },
      h(Shown<AuditAnswer>, {
        asked,
        show: ({ lines, isWhole = true, configured = true, failing, lost = 0 }) => [
          !configured && h('p', { class: 'note' }, t('ledger.none')),
          typeof failing === 'string' &&
            h(
              'p',
              { class: 'notice bad', role: 'alert' },
              t('ledger.failing', { reason: failing })
            ),
          lost > 0 && h('p', { class: 'notice bad' }, t('ledger.lost', { n: lost })),
          !isWhole && h('p', { class: 'note' }, t('ledger.notWhole')),
          h(Table<AuditRow>, {
            label: t('ledger.newest'),
            columns: columns(),
            rows: lines.toReversed(),
            keyOf: keyOfLine,
            empty: t('ledger.noMatch'),
            maxRows: 22
          })
        ]
      })
    )
  )
}

interface FiltersProps {
  readonly filter: LedgerFilter
  readonly setFilter: (filter: LedgerFilter) => void
}

function Filters({ filter, setFilter }: FiltersProps): ComponentChildren {
  return [
    h(Select, {
      key: 'kind',
      label: t('ledger.kind'),
      value: filter.kind,
      options: [
        ['', t('ledger.anyKind')],
        ...kinds.map(kind => [kind, word('auditKind', kind)] as const)
      ],
      onChange: kind => setFilter({ ...filter, kind })
    }),
    h(Search, {
      key: 'user',
      label: t('ledger.who'),
      value: filter.user,
      onInput: user => setFilter({ ...filter, user: user.trim() })
    }),
    h(Search, {
      key: 'id',
      label: t('timeline.requestId'),
      value: filter.requestId,
      onInput: requestId => setFilter({ ...filter, requestId: requestId.trim() })
    })
  ]
}

function toneOf({ line }: AuditRow): Tone {
  const kind = plainText(line['kind'])
  if (kind === 'lost' || line['state'] === 'cut') return 'bad'
  if (kind === 'head' || kind === 'recovered') return 'warn'
  const outcome = plainText(line['outcome'])
  const status = Number(line['status'] ?? 0)
  if (outcome === 'failed' || status >= 500) return 'bad'
  if (outcome === 'refused' || status >= 400 || line['code'] !== undefined) return 'warn'
  return 'plain'
}

/** A line of a reload that no operator asked for names what did. */
function whoOf({ line }: AuditRow): string {
  const text = plainText(line['operator'] ?? line['user'])
  const isReload = line['kind'] === 'config.reload' && line['via'] === undefined
  return isReload ? word('trigger', text) : text
}

function columns(): ReadonlyArray<Column<AuditRow>> {
  return [
    {
      key: 'time',
      head: t('requests.time'),
      width: '6.5rem',
      cell: ({ line }) => {
        const time = plainText(line['at'] ?? line['time'])
        return h('span', { title: time }, formatTime(time))
      }
    },
    {
      key: 'kind',
      head: t('ledger.kind'),
      width: '10rem',
      hide: 'phone',
      sortBy: ({ line }) => plainText(line['kind']),
      cell: row =>
        h(Pill, { tone: toneOf(row), text: word('auditKind', plainText(row.line['kind'])) })
    },
    { key: 'who', head: t('ledger.who'), width: '7rem', sortBy: whoOf, cell: whoOf },
    {
      key: 'what',
      head: t('ledger.what'),
      cell: row => h('span', { title: JSON.stringify(row.line) }, whatOf(row))
    },
    {
      key: 'address',
      head: t('sessions.from'),
      width: '9rem',
      hide: 'phone',
      cell: ({ line }) => h('span', { class: 'mono' }, plainText(line['address']))
    },
    {
      key: 'signed',
      head: t('ledger.signed'),
      width: '6.5rem',
      hide: 'phone',
      cell: ({ signed }) =>
        h(Pill, {
          tone: signed ? 'ok' : 'bad',
          text: t(signed ? 'ledger.valid' : 'ledger.invalid')
        })
    }
  ]
}

/** The facts of a line in their usual order; its own, detail and fields as `name: value`. */
function whatOf({ line }: AuditRow): string {
  const facts = Object.fromEntries(
    ownFacts.flatMap(name => (line[name] === undefined ? [] : [[name, line[name]]]))
  )
  const pairs = [facts, line['detail'], line['fields']].flatMap(value =>
    typeof value === 'object' && value !== null
      ? Object.entries(value).map(
          ([name, each]) => `${isolated(name)}: ${isolated(plainText(each))}`
        )
      : []
  )
  const outcome = plainText(line['outcome'])
  const words = [
    plainText(line['act']),
    outcome === '' ? '' : word('outcome', outcome),
    plainText(line['method']),
    isolated(plainText(line['path'])),
    plainText(line['status']),
    plainText(line['code']),
    ...pairs
  ]
  const text = words.filter(each => each !== '').join(' ')
  return text === '' ? word('auditKind', plainText(line['kind'])) : text
}
