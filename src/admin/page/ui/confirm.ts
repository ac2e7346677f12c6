/** Acts of operators: a dialog says the effect in numbers before anything is changed. */
import { type ComponentChildren, h } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, postJson } from '../api.ts'
import { t, word } from '../words.ts'
import { isolated, plainText } from '../plain-text.ts'
import { createStore, useStore } from '../store.ts'
import { Failed } from './states.ts'

export interface Act {
  readonly title: string
  /** The effect of the act, in a sentence. */
  readonly text: string
  /** Below `/ops/api/`. */
  readonly path: string
  readonly body: Readonly<Record<string, unknown>>
  /** Sent too if the preview says that sessions end: a change since then ends none unasked. */
  readonly ifSessionsEnd?: Readonly<Record<string, unknown>>
  /** Called with the result. */
  readonly onDone: (result: Readonly<Record<string, unknown>>) => void
}

interface Preview {
  readonly act: string
  readonly effect: Readonly<Record<string, unknown>>
  readonly undo: string | null
}

const pending = createStore<Act | undefined>(undefined)
const message = createStore<string | undefined>(undefined)
const messageMs = 8000

/** Asks the operator to confirm an act. */
export function confirmAct(act: Act): void {
  pending.set(act)
}

let messageTimer: ReturnType<typeof setTimeout> | undefined

/** Says something at the edge of the page for a while. */
function say(text: string): void {
  message.set(text)
  clearTimeout(messageTimer)
  messageTimer = setTimeout(() => message.set(undefined), messageMs)
}

/** The dialog and the messages; stands once, in the shell. */
export function Acts(): ComponentChildren {
  const act = useStore(pending)
  const text = useStore(message)
  return [
    h(
      'div',
      { key: 'message', class: 'toast', role: 'status' },
      text !== undefined && h('p', null, text)
    ),
    act !== undefined && h(ConfirmDialog, { key: 'dialog', act })
  ]
}

function ConfirmDialog({ act }: { readonly act: Act }): ComponentChildren {
  const dialog = useRef<HTMLDialogElement>(null)
  const [preview, setPreview] = useState<Preview | undefined>(undefined)
  const [error, setError] = useState<ApiError | undefined>(undefined)
  const [isBusy, setBusy] = useState(false)
  useEffect(() => {
    dialog.current?.showModal()
    void postJson<Preview>(act.path, { ...act.body, preview: true }).then(setPreview, setError)
  }, [])
  const run = () => {
    setBusy(true)
    setError(undefined)
    const agreed = Number(preview?.effect['sessions'] ?? 0) > 0 ? act.ifSessionsEnd : {}
    postJson<Record<string, unknown>>(act.path, { ...act.body, ...agreed }).then(
      result => {
        const { outcome } = result
        if (outcome === 'refused' || outcome === 'incomplete') {
          setBusy(false)
          setError(new ApiError(reasonsOf(result), 200))
          if (outcome === 'incomplete') act.onDone(result)
          return
        }
        pending.set(undefined)
        say(`${act.title}: ${t('confirm.done')}`)
        act.onDone(result)
      },
      (failure: unknown) => {
        setBusy(false)
        setError(failure instanceof ApiError ? failure : new ApiError(String(failure), 0))
      }
    )
  }
  return h(
    'dialog',
    {
      'class': 'dialog',
      'ref': dialog,
      'aria-labelledby': 'act-title',
      'onClose': () => pending.set(undefined)
    },
    h('h2', { id: 'act-title' }, act.title),
    h('p', null, act.text),
    h(Effect, { preview, hasFailed: error !== undefined }),
    error !== undefined && h(Failed, { error }),
    h('p', { class: 'muted' }, t('confirm.ledger')),
    h(
      'div',
      { class: 'dialog-foot' },
      h(
        'button',
        { type: 'button', class: 'button', onClick: () => dialog.current?.close() },
        t('common.cancel')
      ),
      h(
        'button',
        {
          type: 'button',
          class: 'button primary',
          disabled: isBusy || preview === undefined,
          onClick: run
        },
        act.title
      )
    )
  )
}

/** Of a reload that the gateway refused. */
function reasonsOf({ faults, reasons }: Readonly<Record<string, unknown>>): string {
  const texts = [faults, reasons].flat().filter(each => typeof each === 'string')
  return texts.length === 0 ? t('config.refused') : texts.join('; ')
}

interface EffectProps {
  readonly preview: Preview | undefined
  readonly hasFailed: boolean
}

function Effect({ preview, hasFailed }: EffectProps): ComponentChildren {
  if (preview === undefined) {
    return hasFailed ? null : h('p', { class: 'muted', role: 'status' }, t('confirm.counting'))
  }
  const { act, effect, undo } = preview
  const key = `undo.${act}`
  const translated = word('undo', act)
  return h(
    'div',
    { class: 'effect' },
    h('h3', null, t('confirm.effect')),
    h(
      'ul',
      null,
      Object.entries(effect).map(([name, value]) => {
        const isLeast = name === 'sessions' && effect['isWhole'] === false
        const text = effectText(isLeast ? 'sessionsAtLeast' : name, value)
        return text !== undefined && h('li', { key: name }, text)
      })
    ),
    h('h3', null, t('confirm.undo')),
    h('p', { 'data-undo': key }, translated === act ? (undo ?? t('confirm.noUndo')) : translated)
  )
}

/**
 * `{ sessions: 3 }` → `3 sessions`; what has no words stays as it was sent. `isWhole` belongs to
 * the number of sessions, and needs no line of its own.
 */
function effectText(name: string, value: unknown): string | undefined {
  if (name === 'isWhole') return undefined
  if (typeof value === 'number' || Array.isArray(value)) {
    const values = typeof value === 'number' ? { n: value } : { names: value.join(', ') }
    const text = word('effect', name, values)
    if (text !== name) return text
  }
  return `${name}: ${isolated(plainText(value))}`
}
