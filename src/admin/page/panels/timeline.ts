/** The timeline of one request: a waterfall of its steps, in plain words, and what to do. */
import { type ComponentChildren, h } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { useJson } from '../api.ts'
import type { RequestRow } from '../api-types.ts'
import { formatBytes, formatMs, formatSeconds, formatTime } from '../format.ts'
import { t, word } from '../words.ts'
import { Icon } from '../ui/icons.ts'
import { StatusPill } from './status-pill.ts'

interface Step {
  readonly label: string
  readonly text: string
  readonly startMs: number
  readonly ms: number
  readonly tone: 'plain' | 'bad' | 'warn'
}

interface TimelineProps {
  readonly row: RequestRow
  readonly close: () => void
}

interface Detail {
  readonly requests?: readonly RequestRow[]
}

export function Timeline({ row: chosen, close }: TimelineProps): ComponentChildren {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [])
  const row = useDetail(chosen)
  const { code, message, advice, ms } = row
  const steps = stepsOf(row)
  const total = Math.max(ms, ...steps.map(step => step.startMs + step.ms), 0.01)
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') close()
  }
  return h(
    'aside',
    { 'class': 'card detail', 'aria-label': t('timeline.title'), onKeyDown },
    h(
      'header',
      { class: 'card-head' },
      h('h2', { ref: heading, tabIndex: -1 }, t('timeline.title')),
      h(
        'button',
        {
          'type': 'button',
          'class': 'button small',
          'aria-label': t('common.close'),
          'onClick': close
        },
        h(Icon, { name: 'close' })
      )
    ),
    h(
      'div',
      { class: 'card-body' },
      h(
        'p',
        { class: 'request-line' },
        h(StatusPill, { row }),
        ' ',
        h('span', { class: 'method' }, row.method),
        h('span', { class: 'mono' }, row.path)
      ),
      code !== undefined &&
        h(
          'div',
          { class: `notice ${row.status >= 500 ? 'bad' : 'warn'}` },
          h(
            'div',
            null,
            h('strong', { class: 'mono' }, code),
            h('p', null, message ?? reasonOf(row)),
            row.reason !== undefined && h('p', { class: 'mono' }, row.reason),
            advice !== undefined && h('p', null, h('b', null, t('timeline.todo')), ' ', advice)
          )
        ),
      h(
        'ol',
        { class: 'waterfall' },
        steps.map((step, index) => h(StepRow, { key: index, step, total }))
      ),
      h(Facts, { row })
    )
  )
}

/** The request with the advice to its error. */
function useDetail(chosen: RequestRow): RequestRow {
  const { data } = useJson<Detail>(`requests/${encodeURIComponent(chosen.requestId)}`)
  return data?.requests?.find(({ at, path }) => at === chosen.at && path === chosen.path) ?? chosen
}

/** Reasons that the record itself holds. */
function reasonOf({ limit, limitMax, needsRoles, sessionEnded }: RequestRow): string {
  if (limit !== undefined) return t('timeline.refusedBy', { limit, max: limitMax ?? '' })
  if (needsRoles !== undefined) return t('timeline.needsRoles', { roles: needsRoles.join(', ') })
  if (sessionEnded !== undefined) return t('timeline.ended', { reason: sessionEnded })
  return ''
}

function StepRow({
  step,
  total
}: {
  readonly step: Step
  readonly total: number
}): ComponentChildren {
  const { label, text, startMs, ms, tone } = step
  const style = {
    marginLeft: `${Math.min(99, (startMs / total) * 100)}%`,
    width: `${Math.max(0.8, Math.min(100, (ms / total) * 100))}%`
  }
  return h(
    'li',
    { class: tone },
    h('span', { class: 'step-head' }, h('b', null, label), h('span', null, formatMs(ms))),
    h('span', { 'class': 'track', 'aria-hidden': 'true' }, h('i', { style })),
    text !== '' && h('span', { class: 'step-text' }, text)
  )
}

function stepsOf(row: RequestRow): Step[] {
  const { sessionMs = 0, limits = [], limitsMs = 0, attempts = [], queueMs, shapeMs, ms } = row
  const steps: Step[] = []
  if (row.sessionFrom !== undefined || row.session !== undefined) {
    steps.push({
      label: t('timeline.session'),
      text: sessionText(row),
      startMs: 0,
      ms: sessionMs,
      tone: row.sessionEnded === undefined ? 'plain' : 'warn'
    })
  }
  if (limits.length > 0) {
    steps.push({
      label: t('timeline.limits'),
      text: limits.map(limitText).join(' · '),
      startMs: sessionMs,
      ms: limitsMs,
      tone: limits.some(({ isExceeded, isEnforced }) => isExceeded && isEnforced) ? 'warn' : 'plain'
    })
  }
  const first = attempts[0]?.atMs ?? ms
  if (queueMs !== undefined) {
    const startMs = Math.max(0, first - queueMs)
    steps.push({ label: t('timeline.queue'), text: '', startMs, ms: queueMs, tone: 'plain' })
  }
  steps.push(...attempts.map(attempt => attemptStep(attempt, ms)))
  if (shapeMs !== undefined) {
    const startMs = Math.max(0, ms - shapeMs)
    steps.push({ label: t('timeline.shape'), text: '', startMs, ms: shapeMs, tone: 'plain' })
  }
  steps.push({ label: t('timeline.all'), text: sentText(row), startMs: 0, ms, tone: 'plain' })
  return steps
}

function sessionText({ sessionFrom, sessionAgeMs: age, sessionEnded: ended }: RequestRow): string {
  const parts = [
    sessionFrom === undefined ? '' : word('sessionFrom', sessionFrom),
    age === undefined ? '' : t('timeline.age', { age: formatSeconds(age / 1000) }),
    ended === undefined ? '' : t('timeline.ended', { reason: ended })
  ]
  return parts.filter(part => part !== '').join(' · ')
}

function limitText({
  name,
  count,
  max,
  isEnforced,
  isExceeded
}: NonNullable<RequestRow['limits']>[number]): string {
  const number = count === undefined ? t('timeline.notAsked') : `${count}/${max}`
  const mark = isExceeded ? ` ${t(isEnforced ? 'timeline.exceeded' : 'timeline.shadow')}` : ''
  return `${name} ${number}${mark}`
}

function attemptStep(attempt: NonNullable<RequestRow['attempts']>[number], totalMs: number): Step {
  const { upstream, address, purpose, part, atMs, ms, status, failure, reason } = attempt
  const texts = [
    address,
    purpose === undefined || purpose === 'request' ? '' : purpose,
    part ?? '',
    status === undefined ? '' : String(status),
    failure ?? '',
    reason ?? ''
  ]
  return {
    label: t('timeline.attempt', { upstream }),
    text: texts.filter(text => text !== '').join(' · '),
    startMs: atMs,
    ms: ms ?? Math.max(0, totalMs - atMs),
    tone: failure !== undefined || (status !== undefined && status >= 500) ? 'bad' : 'plain'
  }
}

function sentText({ status, sent, missing = [], isFallback }: RequestRow): string {
  const parts = [
    t('timeline.sent', { status: String(status) }),
    sent === undefined ? '' : formatBytes(sent),
    isFallback === true ? t('timeline.fallback') : '',
    missing.length === 0 ? '' : t('timeline.missing', { parts: missing.join(', ') })
  ]
  return parts.filter(part => part !== '').join(' · ')
}

function Facts({ row }: { readonly row: RequestRow }): ComponentChildren {
  const facts: ReadonlyArray<readonly [string, string | undefined]> = [
    [t('timeline.requestId'), row.requestId],
    [t('requests.time'), formatTime(row.at)],
    [t('requests.route'), row.route],
    [t('requests.user'), row.user],
    [t('timeline.userId'), row.userId],
    [t('timeline.sessionId'), row.session ?? row.endedSession],
    [t('sessions.from'), row.address],
    [t('now.replica'), row.replica],
    [t('timeline.trace'), row.traceId]
  ]
  return h(
    'dl',
    { class: 'facts' },
    facts.flatMap(([label, value]) =>
      value === undefined || value === ''
        ? []
        : [h('dt', { key: label }, label), h('dd', { key: `${label} value`, class: 'mono' }, value)]
    )
  )
}
