/** "What if the number were another?", answered from the record of use, with the YAML to write. */
import { type ComponentChildren, h } from 'preact'
import { useState } from 'preact/hooks'
import { useJson } from '../api.ts'
import type { LimitRow, WhatIfAnswer } from '../api-types.ts'
import { formatNumber } from '../format.ts'
import { t, word } from '../i18n.ts'
import { Card } from '../ui/layout.ts'
import { useSettled } from '../ui/settled.ts'
import { Shown } from '../ui/states.ts'
import { callerText } from './caller-text.ts'

const startPercent = 80

export function WhatIf({ limit }: { readonly limit: LimitRow }): ComponentChildren {
  const [percent, setPercent] = useState(startPercent)
  const settled = useSettled(percent)
  const query = new URLSearchParams({ limit: limit.limit, factor: String(settled / 100) })
  const asked = useJson<WhatIfAnswer>(`limits/what-if?${query.toString()}`)
  // The number of the last answer; while the slider moves, the number that is asked next.
  const tried = settled === percent ? asked.data?.number : undefined
  const number = tried ?? Math.max(1, Math.round((limit.max * percent) / 100))
  return h(
    Card,
    { title: t('limits.whatIf', { limit: limit.limit }) },
    h(
      'div',
      { class: 'card-body stack' },
      h(
        'label',
        { class: 'slider' },
        h(
          'span',
          null,
          percentText(percent),
          ': ',
          h('b', null, formatNumber(limit.max)),
          ' → ',
          h('b', null, formatNumber(number))
        ),
        h('input', {
          'type': 'range',
          'min': 10,
          'max': 200,
          'step': 5,
          'value': percent,
          'aria-valuetext': `${percentText(percent)}: ${formatNumber(number)}`,
          'onInput': ({ currentTarget }: { readonly currentTarget: HTMLInputElement }) =>
            setPercent(Number(currentTarget.value))
        })
      ),
      h(Shown<WhatIfAnswer>, { asked, show: answer => h(Answer, { answer }) })
    )
  )
}

function percentText(percent: number): string {
  if (percent === 100) return t('limits.unchanged')
  const n = Math.abs(percent - 100)
  return percent < 100 ? t('limits.lower', { n }) : t('limits.higher', { n })
}

function Answer({ answer }: { readonly answer: WhatIfAnswer }): ComponentChildren {
  const { refused, refusedCallers, callers = [], yaml, lowest, notes = [] } = answer
  const { from, to } = refusedCallers
  const n = to
  const range = from === to ? '' : ` (${formatNumber(from)}–${formatNumber(to)})`
  return [
    h('p', { class: 'big' }, t('limits.wouldRefuse', { n, requests: refused }), range),
    callers.length > 0 &&
      h(
        'ul',
        { class: 'lines' },
        callers.map(each =>
          h('li', { key: each.whom }, `${callerText(each)}: ${formatNumber(each.refused)}`)
        )
      ),
    lowest !== undefined &&
      lowest !== null &&
      h('p', { class: 'muted' }, t('limits.lowest', { n: lowest })),
    notes.map(note => h('p', { key: note, class: 'muted' }, word('note', note))),
    h(Yaml, { yaml })
  ]
}

function Yaml({ yaml }: { readonly yaml: string }): ComponentChildren {
  const [isCopied, setCopied] = useState(false)
  const copy = () => {
    void navigator.clipboard.writeText(yaml).then(
      () => setCopied(true),
      () => setCopied(false)
    )
  }
  return h(
    'figure',
    { class: 'yaml' },
    h(
      'figcaption',
      null,
      t('limits.write'),
      h(
        'button',
        { type: 'button', class: 'button small', onClick: copy },
        t(isCopied ? 'common.copied' : 'common.copy')
      )
    ),
    h('pre', { 'tabIndex': 0, 'aria-label': t('limits.write') }, yaml)
  )
}
