/** The panel Config: what runs, what the files hold, and the revisions to roll back to. */
import { type ComponentChildren, h } from 'preact'
import { useState } from 'preact/hooks'
import { type Asked, useJson } from '../api.ts'
import type { PlanAnswer, Revision, StatusAnswer } from '../api-types.ts'
import { formatAgo, formatNumber, formatTime } from '../format.ts'
import { t, word } from '../i18n.ts'
import { confirmAct } from '../ui/confirm.ts'
import { Icon } from '../ui/icons.ts'
import { Card, Panel } from '../ui/layout.ts'
import { StatePill } from '../ui/pill.ts'
import { Empty, Shown } from '../ui/states.ts'
import { ConfigTruth } from './config-truth.ts'
import { RevisionDiff } from './revision-diff.ts'

const everyMs = 5000
const planEveryMs = 15_000

export function ConfigPanel(): ComponentChildren {
  const status = useJson<StatusAnswer>('status', everyMs)
  const plan = useJson<PlanAnswer>('plan', planEveryMs)
  const reload = () => {
    status.reload()
    plan.reload()
  }
  const askReload = () => {
    confirmAct({
      title: t('config.reload'),
      text: t('config.reloadText'),
      path: 'reload',
      body: { yes: true },
      onDone: reload
    })
  }
  return h(
    Panel,
    {
      title: t('config.title'),
      tools: h(
        'button',
        { type: 'button', class: 'button', onClick: askReload },
        t('config.reload')
      )
    },
    h(Shown<StatusAnswer>, {
      asked: status,
      show: data => [
        h(
          'div',
          { class: 'columns' },
          h(RunningCard, { status: data }),
          h(FilesCard, { status: data, plan })
        ),
        h(RevisionsCard, { revisions: data.revisions, reload })
      ]
    }),
    h(ConfigTruth, null)
  )
}

function RunningCard({ status }: { readonly status: StatusAnswer }): ComponentChildren {
  const { version, generation, folder, startedAt, revisions, draining = [] } = status
  const [running] = revisions
  return h(
    Card,
    { title: t('config.running') },
    h(
      'dl',
      { class: 'facts' },
      h('dt', null, t('config.generation')),
      h('dd', null, formatNumber(generation)),
      h('dt', null, t('config.taken')),
      h(
        'dd',
        null,
        running === undefined ? '–' : `${formatTime(running.at)} · ${word('trigger', running.by)}`
      ),
      h('dt', null, t('config.folder')),
      h('dd', { class: 'mono' }, folder),
      h('dt', null, t('now.version')),
      h('dd', null, version),
      h('dt', null, t('config.started')),
      h('dd', null, formatAgo(startedAt)),
      draining.length > 0 && h('dt', null, t('config.draining')),
      draining.length > 0 && h('dd', null, String(draining.length))
    )
  )
}

interface FilesProps {
  readonly status: StatusAnswer
  readonly plan: Asked<PlanAnswer>
}

/** The files beside what runs: their faults, what differs, and what waits for a restart. */
function FilesCard({ status, plan }: FilesProps): ComponentChildren {
  const { files, restartNeeded } = status
  const faults = plan.data?.faults ?? files.faults ?? []
  const changes = plan.data?.changes ?? []
  return h(
    Card,
    { title: t('config.files'), tools: h(StatePill, { state: files.state }) },
    h(
      'div',
      { class: 'card-body stack' },
      files.state === 'rolled back' && h('p', null, t('config.rolledBack')),
      faults.length > 0 && h(Faults, { faults }),
      faults.length === 0 &&
        changes.length === 0 &&
        restartNeeded.length === 0 &&
        h('p', { class: 'muted' }, t('config.same')),
      changes.length > 0 && h(Lines, { title: t('config.differ'), lines: changes.map(lineOf) }),
      restartNeeded.length > 0 && h(Lines, { title: t('config.restart'), lines: restartNeeded }),
      (plan.data?.risks ?? []).length > 0 &&
        h(Lines, { title: t('config.risks'), lines: plan.data?.risks ?? [] })
    )
  )
}

function lineOf({ text, restart }: NonNullable<PlanAnswer['changes']>[number]): string {
  return restart ? `${text} (${t('config.needsRestart')})` : text
}

function Faults({ faults }: { readonly faults: readonly string[] }): ComponentChildren {
  return h(
    'div',
    { class: 'notice bad', role: 'alert' },
    h(Icon, { name: 'bad' }),
    h(
      'div',
      null,
      h('strong', null, t('config.refused')),
      h(
        'ul',
        { class: 'lines mono' },
        faults.map(fault => h('li', { key: fault }, fault))
      )
    )
  )
}

interface LinesProps {
  readonly title: string
  readonly lines: readonly string[]
}

function Lines({ title, lines }: LinesProps): ComponentChildren {
  return h(
    'div',
    null,
    h('h3', null, title),
    h(
      'ul',
      { class: 'lines mono' },
      lines.map(line => h('li', { key: line }, line))
    )
  )
}

interface RevisionsProps {
  readonly revisions: readonly Revision[]
  readonly reload: () => void
}

function RevisionsCard({ revisions, reload }: RevisionsProps): ComponentChildren {
  const [open, setOpen] = useState<number | undefined>(undefined)
  return h(
    Card,
    { title: t('config.revisions'), count: revisions.length },
    revisions.length === 0 && h(Empty, null, t('common.none')),
    h(
      'ol',
      { class: 'revisions' },
      revisions.map((revision, index) =>
        h(RevisionRow, {
          key: revision.number,
          revision,
          isRunning: index === 0,
          isOpen: open === revision.number,
          toggle: () => setOpen(open === revision.number ? undefined : revision.number),
          reload
        })
      )
    )
  )
}

interface RevisionProps {
  readonly revision: Revision
  readonly isRunning: boolean
  readonly isOpen: boolean
  readonly toggle: () => void
  readonly reload: () => void
}

function RevisionRow(props: RevisionProps): ComponentChildren {
  const { revision, isRunning, isOpen, toggle, reload } = props
  const { number, at, by, changes, of } = revision
  const rollBack = () => {
    confirmAct({
      title: t('config.rollBack', { number: String(number) }),
      text: t('config.rollBackText', { number: String(number), time: formatTime(at) }),
      path: 'rollback',
      body: { to: number, yes: true },
      onDone: reload
    })
  }
  return h(
    'li',
    null,
    h(
      'div',
      { class: 'revision-head' },
      h('b', null, `#${number}`),
      h('span', null, formatTime(at)),
      h('span', { class: 'muted' }, word('trigger', by)),
      of !== undefined && h('span', { class: 'muted' }, t('config.of', { number: String(of) })),
      isRunning && h(StatePill, { state: 'running' }),
      h(
        'span',
        { class: 'tools' },
        h(
          'button',
          { 'type': 'button', 'class': 'button small', 'aria-expanded': isOpen, 'onClick': toggle },
          t('config.diff', { number: String(number) })
        ),
        !isRunning &&
          h(
            'button',
            { type: 'button', class: 'button small', onClick: rollBack },
            t('config.rollBack', { number: String(number) })
          )
      )
    ),
    h(
      'ul',
      { class: 'lines mono' },
      changes.map(change => h('li', { key: change }, change))
    ),
    isOpen && h(RevisionDiff, { number })
  )
}
