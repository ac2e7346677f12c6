/** The states of a panel without data: loading, empty, failed. */
import { type ComponentChildren, h } from 'preact'
import type { ApiError } from '../api.ts'
import { t } from '../i18n.ts'
import { Icon } from './icons.ts'

export function Empty({ children }: { readonly children?: ComponentChildren }): ComponentChildren {
  return h('p', { class: 'empty' }, children)
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
