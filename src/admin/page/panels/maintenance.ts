/** The panel Maintenance: closes routes for a time, beside what the files close. */
import { type ComponentChildren, h } from 'preact'
import { useState } from 'preact/hooks'
import { useJson } from '../api.ts'
import type { MaintenanceAnswer, MaintenanceRecord } from '../api-types.ts'
import { formatAgo, formatTime } from '../format.ts'
import { t } from '../words.ts'
import { confirmAct } from '../ui/confirm.ts'
import { Card, Panel, Select } from '../ui/layout.ts'
import { Pill } from '../ui/pill.ts'
import { Shown } from '../ui/states.ts'

const everyMs = 3000

export function MaintenancePanel(): ComponentChildren {
  const asked = useJson<MaintenanceAnswer>('maintenance', everyMs)
  const { reload } = asked
  return h(
    Panel,
    { title: t('maintenance.title') },
    h(Shown<MaintenanceAnswer>, {
      asked,
      show: ({ file, operators, shared, info }) => [
        !shared && h('p', { class: 'notice warn', title: info }, t('maintenance.alone')),
        h(
          'div',
          { class: 'columns' },
          h(RecordCard, {
            title: t('maintenance.byPage'),
            records: operators,
            reload,
            isOwn: true
          }),
          h(RecordCard, {
            title: t('maintenance.byFile'),
            records: file === null ? [] : [file],
            reload,
            isOwn: false
          })
        ),
        h(BeginCard, { reload })
      ]
    })
  )
}

interface RecordProps {
  readonly title: string
  readonly records: readonly MaintenanceRecord[]
  readonly reload: () => void
  readonly isOwn: boolean
}

function RecordCard({ title, records, reload, isOwn }: RecordProps): ComponentChildren {
  const end = () => {
    confirmAct({
      title: t('maintenance.end'),
      text: t('maintenance.endText'),
      path: 'maintenance/end',
      body: {},
      onDone: reload
    })
  }
  const isOn = records.length > 0
  return h(
    Card,
    {
      title,
      tools: h(Pill, {
        tone: isOn ? 'warn' : 'ok',
        text: t(isOn ? 'maintenance.on' : 'maintenance.off')
      })
    },
    isOn
      ? records.map((record, index) => h(RecordFacts, { record, key: index }))
      : h('p', { class: 'empty' }, t(isOwn ? 'maintenance.noneByPage' : 'maintenance.noneByFile')),
    isOn &&
      isOwn &&
      h(
        'div',
        { class: 'card-body' },
        h('button', { type: 'button', class: 'button', onClick: end }, t('maintenance.end'))
      )
  )
}

function RecordFacts({ record }: { readonly record: MaintenanceRecord }): ComponentChildren {
  const { until, message, author, since, routes = [], methods = [], allowRoles = [] } = record
  const facts: ReadonlyArray<readonly [string, string | undefined]> = [
    [t('maintenance.routes'), routes.length === 0 ? t('maintenance.allRoutes') : routes.join(', ')],
    [t('maintenance.methods'), methods.length === 0 ? undefined : methods.join(', ')],
    [t('maintenance.roles'), allowRoles.length === 0 ? undefined : allowRoles.join(', ')],
    [
      t('maintenance.until'),
      until === undefined ? undefined : `${formatTime(until)} (${formatAgo(until)})`
    ],
    [t('maintenance.message'), message],
    [t('maintenance.author'), author],
    [t('maintenance.since'), since === undefined ? undefined : formatTime(since)]
  ]
  return h(
    'dl',
    { class: 'facts' },
    facts.flatMap(([label, value]) =>
      value === undefined
        ? []
        : [h('dt', { key: label }, label), h('dd', { key: `${label} value` }, value)]
    )
  )
}

const minutesOf = ['15', '30', '60', '240', '480'] as const
const writing = ['POST', 'PUT', 'PATCH', 'DELETE']

function BeginCard({ reload }: { readonly reload: () => void }): ComponentChildren {
  const [minutes, setMinutes] = useState<string>('30')
  const [message, setMessage] = useState('')
  const [scope, setScope] = useState('all')
  const begin = (event: Event) => {
    event.preventDefault()
    const until = new Date(Date.now() + Number(minutes) * 60_000)
    confirmAct({
      title: t('maintenance.begin'),
      text: t('maintenance.beginText', { time: formatTime(until.toISOString()) }),
      path: 'maintenance',
      body: {
        until: until.toISOString(),
        ...(message.trim() !== '' && { message: message.trim() }),
        ...(scope === 'writing' && { methods: writing })
      },
      onDone: reload
    })
  }
  return h(
    Card,
    { title: t('maintenance.begin') },
    h(
      'form',
      { class: 'form', onSubmit: begin },
      h(
        'div',
        { class: 'field' },
        h('span', null, t('maintenance.for')),
        h(Select, {
          label: t('maintenance.for'),
          value: minutes,
          options: minutesOf.map(
            each => [each, t('maintenance.minutes', { n: Number(each) })] as const
          ),
          onChange: setMinutes
        })
      ),
      h(
        'div',
        { class: 'field' },
        h('span', null, t('maintenance.scope')),
        h(Select, {
          label: t('maintenance.scope'),
          value: scope,
          options: [
            ['all', t('maintenance.everything')],
            ['writing', t('maintenance.readOnly')]
          ],
          onChange: setScope
        })
      ),
      h(
        'label',
        { class: 'field wide' },
        h('span', null, t('maintenance.messageForUsers')),
        h('input', {
          class: 'input',
          value: message,
          maxLength: 200,
          onInput: ({ currentTarget }: { readonly currentTarget: HTMLInputElement }) =>
            setMessage(currentTarget.value)
        })
      ),
      h('button', { class: 'button primary' }, t('maintenance.begin'))
    )
  )
}
