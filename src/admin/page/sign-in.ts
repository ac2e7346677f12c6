/** The sign-in form: as a page of its own, or above the panel whose session ended. */
import { type ComponentChildren, h } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, getJson, operator, type Operator, postJson } from './api.ts'
import { t } from './words.ts'
import { Failed } from './ui/states.ts'

interface FormProps {
  readonly title: string
  readonly note?: string
}

export function SignInForm({ title, note }: FormProps): ComponentChildren {
  const [error, setError] = useState<ApiError | undefined>(undefined)
  const [isBusy, setBusy] = useState(false)
  const first = useRef<HTMLInputElement>(null)
  useEffect(() => first.current?.focus(), [])
  const onSubmit = (event: SubmitEvent) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    const read = (name: string) => (form.get(name) as string | null) ?? ''
    setBusy(true)
    setError(undefined)
    void signIn(read('username'), read('password')).then(failure => {
      setBusy(false)
      setError(failure)
      if (failure !== undefined) first.current?.focus()
    })
  }
  return h(
    'form',
    { class: 'sign-in', onSubmit },
    h('h1', null, title),
    note !== undefined && h('p', { class: 'muted' }, note),
    error !== undefined && h(Failed, { error }),
    h(
      'label',
      null,
      t('signIn.username'),
      h('input', {
        class: 'input',
        name: 'username',
        autocomplete: 'username',
        required: true,
        spellcheck: false,
        autocapitalize: 'none',
        ref: first
      })
    ),
    h(
      'label',
      null,
      t('signIn.password'),
      h('input', {
        class: 'input',
        name: 'password',
        type: 'password',
        autocomplete: 'current-password',
        required: true
      })
    ),
    h('button', { class: 'button primary', disabled: isBusy }, t('signIn.submit'))
  )
}

/** @returns why it failed */
async function signIn(username: string, password: string): Promise<ApiError | undefined> {
  try {
    await postJson('sign-in', { username, password })
    operator.set(await getJson<Operator>('me'))
    return undefined
  } catch (error) {
    return error instanceof ApiError ? error : new ApiError(String(error), 0)
  }
}

/** Stands above the panel, which stays as it is. */
export function SignInDialog(): ComponentChildren {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return h(
    'dialog',
    { 'class': 'dialog', 'ref': dialog, 'aria-label': t('signIn.again'), 'onCancel': keepOpen },
    h(SignInForm, { title: t('signIn.again'), note: t('signIn.againNote') })
  )
}

function keepOpen(event: Event): void {
  event.preventDefault()
}
