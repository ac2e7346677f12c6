import type { GatewayState } from '../../services/gateway-state.ts'
import type { PlanAnswer } from '../state-schemas.ts'
import { ago, time } from './format.ts'
import { html, type Html } from '../../app/hooks/html.ts'
import { act, card, list, pill, say } from './parts.ts'
import texts from './texts.json' with { type: 'json' }

const words = texts.config

type Config = GatewayState['config']

export function configPage(config: Config, plan: PlanAnswer): Html {
  const { generation, hash, folder, restartNeeded, taken } = config
  const { at, by } = taken
  const since = { generation, time: time(at), ago: ago(at), by }
  return html`
    <div class="columns">
      ${card(
        { title: words.running },
        html`<ul class="mono">
          <li>${say(words.generation, since)}</li>
          <li>${say(words.folder, { folder, hash })}</li>
        </ul>`,
        list(words.needRestart, restartNeeded),
        list(words.lastChanges, taken.changes)
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
  const textsOf = (isLate: boolean) =>
    changes.filter(({ restart }) => restart === isLate).map(change => change.text)
  const fields = html`<label><input type="checkbox" name="yes" /> ${words.evenIfMost}</label>`
  const reload = act('reload', {}, ['/reload'], { fields })
  const state = pill('ok', isSame ? words.same : words.different)
  return card(
    { title: words.files, tools: [isRefused ? pill('bad', words.refused) : state, reload] },
    isRefused && html`<p class="empty bad">${words.refusedFiles}</p>`,
    list(words.faults, faults),
    list(words.reloadChanges, textsOf(false)),
    list(words.restartChanges, textsOf(true)),
    list(words.mind, risks),
    !isRefused && isSame && html`<p class="empty">${words.noChange}</p>`
  )
}
