/** The panel Sessions: who is signed in, and who is locked out of signing in. */
import { type ComponentChildren, h } from 'preact'
import { useState } from 'preact/hooks'
import { useJson } from '../api.ts'
import type { SessionRow, SessionsAnswer } from '../api-types.ts'
import { formatAgo, formatNumber, formatSeconds, formatTime } from '../format.ts'
import { t } from '../i18n.ts'
import { confirmAct } from '../ui/confirm.ts'
import { Card, Panel, Search } from '../ui/layout.ts'
import { useSettled } from '../ui/settled.ts'
import { Shown } from '../ui/states.ts'
import { type Column, Table } from '../ui/table.ts'
import { LockoutsCard } from './lockouts.ts'

const everyMs = 5000

export function SessionsPanel(): ComponentChildren {
  const asked = useJson<SessionsAnswer>('sessions', everyMs)
  const closeAll = () => {
    confirmAct({
      title: t('sessions.closeAll'),
      text: t('sessions.closeAllText'),
      path: 'sessions/close',
      body: { everyone: true },
      onDone: asked.reload
    })
  }
  return h(
    Panel,
    {
      title: t('sessions.title'),
      tools: h(
        'button',
        { type: 'button', class: 'button danger', onClick: closeAll },
        t('sessions.closeAll')
      )
    },
    h(Shown<SessionsAnswer>, {
      asked,
      show: answer => h(SessionsCard, { answer, reload: asked.reload })
    }),
    h(LockoutsCard, null)
  )
}

interface CardProps {
  readonly answer: SessionsAnswer
  readonly reload: () => void
}

function SessionsCard({ answer, reload }: CardProps): ComponentChildren {
  const [search, setSearch] = useState('')
  const { sessions, unreadable = 0, isWhole = true, users } = answer
  const name = useSettled(search.trim())
  // The list is bounded, so a user that it leaves out is asked for by name.
  const isAsked = !isWhole && name !== ''
  const ofUser = useJson<SessionsAnswer>(
    isAsked ? `sessions?user=${encodeURIComponent(name)}` : undefined,
    everyMs
  )
  const all = new Map([...sessions, ...(ofUser.data?.sessions ?? [])].map(row => [row.id, row]))
  const rows = [...all.values()].filter(row => matches(row, search.trim().toLowerCase()))
  return h(
    Card,
    {
      title: t('sessions.signedIn'),
      count: sessions.length,
      tools: h(Search, { label: t('sessions.search'), value: search, onInput: setSearch })
    },
    !isWhole &&
      h(
        'p',
        { class: 'note' },
        t('sessions.notAll', { shown: sessions.length, users: formatNumber(users) })
      ),
    unreadable > 0 && h('p', { class: 'note' }, t('sessions.unreadable', { n: unreadable })),
    h(Table<SessionRow>, {
      label: t('sessions.signedIn'),
      columns: columnsOf(reload),
      rows,
      keyOf: ({ id }) => id,
      sort: { key: 'used', isDescending: true },
      empty: search === '' ? t('sessions.nobody') : t('sessions.noMatch', { search })
    })
  )
}

function matches({ user, userId, address, source }: SessionRow, search: string): boolean {
  if (search === '') return true
  return [user, userId, address, source].some(text => text.toLowerCase().includes(search))
}

function columnsOf(reload: () => void): ReadonlyArray<Column<SessionRow>> {
  return [
    {
      key: 'user',
      head: t('sessions.user'),
      sortBy: ({ user }) => user,
      cell: ({ user, userId }) => h('span', { title: userId }, user)
    },
    {
      key: 'source',
      head: t('sessions.source'),
      width: '7rem',
      hide: 'tablet',
      sortBy: ({ source }) => source,
      cell: ({ source }) => source
    },
    {
      key: 'since',
      head: t('sessions.since'),
      width: '8rem',
      hide: 'phone',
      sortBy: ({ startedAt }) => startedAt,
      cell: ({ startedAt }) => h('span', { title: formatTime(startedAt) }, formatAgo(startedAt))
    },
    {
      key: 'used',
      head: t('sessions.used'),
      width: '8rem',
      hide: 'phone',
      sortBy: ({ lastUsedAt }) => lastUsedAt,
      cell: ({ lastUsedAt }) => formatAgo(lastUsedAt)
    },
    {
      key: 'from',
      head: t('sessions.from'),
      width: '8rem',
      sortBy: ({ address }) => address,
      cell: ({ address }) => h('span', { class: 'mono', title: address }, address)
    },
    {
      key: 'with',
      head: t('sessions.with'),
      hide: 'tablet',
      cell: ({ agent }) => h('span', { title: agent }, browserOf(agent))
    },
    {
      key: 'ends',
      head: t('sessions.ends'),
      width: '6rem',
      hide: 'phone',
      isNumber: true,
      sortBy: ({ idleIn }) => idleIn,
      cell: ({ idleIn }) => formatSeconds(idleIn)
    },
    {
      key: 'acts',
      head: t('common.acts'),
      width: '8rem',
      cell: row => h(RowActs, { row, reload })
    }
  ]
}

interface RowActsProps {
  readonly row: SessionRow
  readonly reload: () => void
}

function RowActs({ row, reload }: RowActsProps): ComponentChildren {
  const { id, user, userId, source } = row
  const common = { path: 'sessions/close', onDone: reload }
  const ofUser = { user: userId, by: 'id', source }
  const closeThis = () => {
    confirmAct({
      ...common,
      title: t('sessions.close'),
      text: t('sessions.closeText', { user }),
      body: { ...ofUser, id }
    })
  }
  const closeUser = () => {
    confirmAct({
      ...common,
      title: t('sessions.closeUser'),
      text: t('sessions.closeUserText', { user }),
      body: ofUser
    })
  }
  return h(
    'span',
    { class: 'row-acts' },
    h(
      'button',
      {
        'type': 'button',
        'class': 'button small',
        'aria-label': t('sessions.closeLabel', { user }),
        'onClick': closeThis
      },
      t('sessions.closeShort')
    ),
    h(
      'button',
      {
        'type': 'button',
        'class': 'button small',
        'aria-label': t('sessions.closeUserLabel', { user }),
        'onClick': closeUser
      },
      t('sessions.closeUserShort')
    )
  )
}

const browsers: ReadonlyArray<readonly [pattern: RegExp, name: string]> = [
  [/\bEdg\/(\d+)/, 'Edge'],
  [/\bFirefox\/(\d+)/, 'Firefox'],
  [/\bChrome\/(\d+)/, 'Chrome'],
  [/\bVersion\/(\d+)/, 'Safari']
]

/** Of a usual User-Agent the browser and the system; others stay as they are. */
function browserOf(agent: string): string {
  for (const [pattern, name] of browsers) {
    const [, version] = pattern.exec(agent) ?? []
    if (version === undefined) continue
    const [system] = /Windows|Mac OS X|Android|iPhone|iPad|Linux/.exec(agent) ?? []
    return system === undefined ? `${name} ${version}` : `${name} ${version}, ${system}`
  }
  return agent
}
