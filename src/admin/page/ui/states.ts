/** The states of a panel without data: loading, empty, failed. */
import { type ComponentChildren, h } from 'preact'
import type { ApiError, Asked } from '../api.ts'
import { t } from '../words.ts'
import { Icon } from './icons.ts'

export function Empty({ children }: { readonly children?: ComponentChildren }): ComponentChildren {
  return h('p', { class: 'empty' }, children)
}

function Loading(): ComponentChildren {
  return h('p', { class: 'empty', role: 'status' }, t('common.loading'))
}

function messageOf(error: ApiError): string {
  if (error.status === 0) return t('error.network')
  return error.message
}

interface FailedProps {
  readonly error: ApiError
  readonly retry?: (() => void) | undefined
}

export function Failed({ error, retry }: FailedProps): ComponentChildren {
  return h(
    'div',
    { class: 'notice bad', role: 'alert' },
    h(Icon, { name: 'bad' }),
    h(
      'div',
      null,
      h('strong', null, messageOf(error)),
      error.requestId !== undefined &&
        h('p', { class: 'muted mono' }, t('error.requestId', { id: error.requestId })),
      retry !== undefined &&
        h('button', { type: 'button', class: 'button', onClick: retry }, t('error.retry'))
    )
  )
}

interface AskedProps<T> {
  readonly asked: Asked<T>
  readonly show: (data: T) => ComponentChildren
}

/** Shows what was asked for; older data stay visible below an error. */
export function Shown<T>({ asked, show }: AskedProps<T>): ComponentChildren {
  const { data, error, isLoading, reload } = asked
  const isMissing = error?.status === 404
  return h(
    'div',
    { class: 'shown' },
    error !== undefined && !isMissing && h(Failed, { error, retry: reload }),
    isMissing && data === undefined && h(Empty, null, t('error.missing')),
    data === undefined && isLoading && h(Loading, null),
    data !== undefined && show(data)
  )
}
