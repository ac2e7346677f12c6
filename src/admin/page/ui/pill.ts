/** A state as a word with a colour and a sign: never by the colour alone. */
import { type ComponentChildren, h } from 'preact'
import { word } from '../words.ts'
import { Icon, type IconName } from './icons.ts'

export type Tone = 'ok' | 'warn' | 'bad' | 'plain'

const toneOfState: Readonly<Record<string, Tone>> = {
  'up': 'ok',
  'healthy': 'ok',
  'running': 'ok',
  'ready': 'ok',
  'connected': 'ok',
  'degraded': 'warn',
  'draining': 'warn',
  'connecting': 'warn',
  'open': 'bad',
  'down': 'bad',
  'unhealthy': 'bad',
  'unavailable': 'bad',
  'not ready': 'bad',
  'refused': 'bad'
}

const iconOf: Readonly<Partial<Record<Tone, IconName>>> = { ok: 'ok', warn: 'warn', bad: 'bad' }

interface PillProps {
  readonly tone: Tone
  readonly text: string
  readonly title?: string | undefined
}

export function Pill({ tone, text, title }: PillProps): ComponentChildren {
  const icon = iconOf[tone]
  return h(
    'span',
    { class: `pill ${tone}`, ...(title !== undefined && { title }) },
    icon !== undefined && h(Icon, { name: icon }),
    text
  )
}

/** @param state as the gateway names it; more words may follow it, such as a reason */
export function StatePill({ state }: { readonly state: string }): ComponentChildren {
  const [first = ''] = state.split(/[:,(]/, 1)
  const name = first.trim()
  const tone = toneOfState[state] ?? toneOfState[name] ?? 'plain'
  return h(Pill, { tone, text: word('state', name) + state.slice(first.length), title: state })
}
