import type { GatewayState } from '../../services/gateway-state.ts'
import type { PlanAnswer } from '../state-schemas.ts'
import { ago, time } from './format.ts'
import { html, type Html } from '../../app/hooks/html.ts'
import { act, card, list, pill } from './parts.ts'

type Config = GatewayState['config']

export function configPage(config: Config, plan: PlanAnswer): Html {
  const { generation, hash, folder, restartNeeded, taken } = config
  return html`
    <div class="columns">
      ${card(
        { title: 'Running' },
        html`<ul class="mono">
          <li>Generation ${generation}, since ${time(taken.at)} (${ago(taken.at)}), ${taken.by}</li>
          <li>Folder ${folder}, hash ${hash}</li>
        </ul>`,
        list('Need a restart', restartNeeded),
        list('Changes of the last reload', taken.changes)
      )}
      ${filesCard(config, plan)}
    </div>
  `
}

function filesCard({ files: running }: Config, { changes, risks, ...found }: PlanAnswer): Html {
  // The running config may have been refused for what the files alone do not show.
  const faults = found.faults.length > 0 ? found.faults : (running.faults ?? [])
  const isRefused = faults.length > 0
  const isSame = changes.length === 0
  const inWords = (isLate: boolean) =>
    changes.filter(({ restart }) => restart === isLate).map(change => change.text)
  const text = 'The files become the running config, if they have no fault.'
  const fields = html`<label><input type="checkbox" name="yes" /> Also if most users vanish</label>`
  const reload = act('Reload', text, ['/reload'], { fields })
  const state = pill('ok', isSame ? 'same' : 'different')
  return card(
    { title: 'Files', tools: [isRefused ? pill('bad', 'refused') : state, reload] },
    isRefused &&
      html`<p class="empty bad">What ran before runs on; these files will not start again.</p>`,
    list('Faults', faults),
    list('A reload changes', inWords(false)),
    list('Only a restart changes', inWords(true)),
    list('Mind', risks),
    !isRefused && isSame && html`<p class="empty">The files hold what runs.</p>`
  )
}
