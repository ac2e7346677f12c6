/** The panel Sessions: who is signed in, and who is locked out of signing in. */
import { type ComponentChildren, h } from 'preact'
import { useState } from 'preact/hooks'
import type { SessionRow } from '../api-types.ts'
import { formatAgo, formatSeconds, formatTime } from '../format.ts'
import { t } from '../words.ts'
import { confirmAct } from '../ui/confirm.ts'
import { Card, Panel, Search } from '../ui/layout.ts'
import { useSettled } from '../ui/settled.ts'
import { Shown } from '../ui/states.ts'
import { type Column, Table } from '../ui/table.ts'
import { LockoutsCard } from './lockouts.ts'
import { type ListedSessions, type SessionList, useSessionList } from './session-reader.ts'

export function SessionsPanel(): ComponentChildren {
  const [search, setSearch] = useState('')
  const text = search.trim()
  const name = useSettled(text)
  const listed = useSessionList('')
  const matching = useSessionList(name === '' ? undefined : name)
  const reload = () => {
    listed.reload()
    matching.reload()
  }
  const closeAll = () => {
    confirmAct({
      title: t('sessions.closeAll'),
      text: t('sessions.closeAllText'),
      path: 'sessions/close',
      body: { everyone: true },
      onDone: reload
    })
  }
  const asked = { ...listed, error: listed.error ?? matching.error, reload }
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
    h(
      Card,
      {
        title: t('sessions.signedIn'),
        count: listed.data?.users,
        tools: h(Search, { label: t('sessions.search'), value: search, onInput: setSearch })
      },
      h(Shown<ListedSessions>, {
        asked,
        show: list =>
          h(SessionsTable, {
            listed: list,
            matching: text === name ? matching.data : undefined,
            search: text,
            reload
          })
      }),
      text === name && h(More, { list: name === '' ? listed : matching })
    ),
    h(LockoutsCard, null)
  )
}

interface SessionsTableProps {
  readonly listed: ListedSessions
  /** Of users who fit the search; they may stand on pages that are not listed. */
  readonly matching: ListedSessions | undefined
  readonly search: string
  readonly reload: () => void
}

function SessionsTable({
  listed,
  matching,
  search,
  reload
}: SessionsTableProps): ComponentChildren {
  const all = new Map([...listed.sessions, ...(matching?.sessions ?? [])].map(row => [row.id, row]))
  const rows = [...all.values()].filter(row => matches(row, search.toLowerCase()))
  const isSearched = matching !== undefined || !listed.hasMore
  return h(Table<SessionRow>, {
    label: t('sessions.signedIn'),
    columns: columnsOf(reload),
    rows,
    keyOf: ({ id }) => id,
    sort: { key: 'used', isDescending: true },
    empty: emptyText(search, isSearched)
  })
}

function emptyText(search: string, isSearched: boolean): string {
  if (search === '') return t('sessions.nobody')
  return isSearched ? t('sessions.noMatch', { search }) : t('common.loading')
}

/** The number of listed sessions and of all, and a button for more of them. */
function More({ list }: { readonly list: SessionList }): ComponentChildren {
  if (list.data?.hasMore !== true) return null
  const { sessions, users } = list.data
  return h(
    'p',
    { class: 'note' },
    t('sessions.notAll', { shown: sessions.length, users }),
    ' ',
    h('button', { type: 'button', class: 'button small', onClick: list.more }, t('sessions.more'))
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
