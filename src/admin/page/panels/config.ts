/** The panel Config: what runs, and what the files hold. */
import { type ComponentChildren, h } from 'preact'
import { type Asked, useJson } from '../api.ts'
import type { ConfigAnswer, FilesAnswer } from '../api-types.ts'
import { formatAgo, formatNumber, formatTime } from '../format.ts'
import { t, word } from '../words.ts'
import { confirmAct } from '../ui/confirm.ts'
import { Icon } from '../ui/icons.ts'
import { Card, Panel } from '../ui/layout.ts'
import { StatePill } from '../ui/pill.ts'
import { Shown } from '../ui/states.ts'
import { ConfigTruth } from './config-truth.ts'
import { FileDiff } from './file-diff.ts'

const everyMs = 5000
const filesEveryMs = 15_000

export function ConfigPanel(): ComponentChildren {
  const config = useJson<ConfigAnswer>('config', everyMs)
  const files = useJson<FilesAnswer>('config/files', filesEveryMs)
  const reload = () => {
    config.reload()
    files.reload()
  }
  const askReload = () => {
    confirmAct({
      title: t('config.reload'),
      text: t('config.reloadText'),
      path: 'reload',
      body: {},
      ifSessionsEnd: { yes: true },
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
    h(Shown<ConfigAnswer>, {
      asked: config,
      show: data => [
        h(
          'div',
          { class: 'columns' },
          h(RunningCard, { config: data }),
          h(FilesCard, { config: data, asked: files })
        )
      ]
    }),
    h(ConfigTruth, null)
  )
}

function RunningCard({ config }: { readonly config: ConfigAnswer }): ComponentChildren {
  const { generation, folder, hash, takenAt, by, changes } = config
  return h(
    Card,
    { title: t('config.running') },
    h(
      'dl',
      { class: 'facts' },
      h('dt', null, t('config.generation')),
      h('dd', null, formatNumber(generation)),
      h('dt', null, t('config.taken')),
      h('dd', null, `${formatTime(takenAt)} (${formatAgo(takenAt)}) · ${word('trigger', by)}`),
      h('dt', null, t('config.hash')),
      h('dd', { class: 'mono' }, hash),
      h('dt', null, t('config.folder')),
      h('dd', { class: 'mono' }, folder)
    ),
    changes.length > 0 &&
      h('div', { class: 'card-body' }, h(Lines, { title: t('config.lastChange'), lines: changes }))
  )
}

interface FilesProps {
  readonly config: ConfigAnswer
  readonly asked: Asked<FilesAnswer>
}

const unread: Pick<FilesAnswer, 'reload' | 'restart' | 'risks' | 'faults'> = {
  reload: [],
  restart: [],
  risks: [],
  faults: []
}

/** The files beside what runs: their faults, what differs, and what waits for a restart. */
function FilesCard({ config, asked }: FilesProps): ComponentChildren {
  const { files, restartNeeded } = config
  const { data: read, error } = asked
  const { reload, restart, risks, faults: faultsNow } = read ?? unread
  const faults = faultsNow.length > 0 ? faultsNow : (files.faults ?? [])
  const afterRestart = restart.length > 0 ? restart : restartNeeded
  const isSame =
    read !== undefined && [faults, reload, afterRestart].every(lines => lines.length === 0)
  return h(
    Card,
    { title: t('config.files'), tools: h(StatePill, { state: files.state }) },
    h(
      'div',
      { class: 'card-body stack' },
      (read === undefined || error !== undefined) &&
        h(Shown<FilesAnswer>, { asked, show: () => null }),
      faults.length > 0 && h(Faults, { faults }),
      isSame && h('p', { class: 'muted' }, t('config.same')),
      reload.length > 0 && h(Lines, { title: t('config.differ'), lines: reload }),
      afterRestart.length > 0 && h(Lines, { title: t('config.restart'), lines: afterRestart }),
      risks.length > 0 && h(Lines, { title: t('config.risks'), lines: risks }),
      read?.files.map(({ file, diff }) => h(FileDiff, { key: file, file, diff }))
    )
  )
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
