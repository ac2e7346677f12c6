/** Panels, cards and the search field. */
import { type ComponentChildren, h } from 'preact'

interface PanelProps {
  readonly title: string
  /** Fields and buttons beside the title. */
  readonly tools?: ComponentChildren
  readonly children?: ComponentChildren
}

export function Panel({ title, tools, children }: PanelProps): ComponentChildren {
  return h(
    'div',
    { class: 'panel' },
    h('header', { class: 'panel-head' }, h('h1', null, title), h('div', { class: 'tools' }, tools)),
    children
  )
}

interface CardProps extends PanelProps {
  readonly count?: number | undefined
  readonly class?: string
}

export function Card({
  title,
  count,
  tools,
  children,
  class: name = ''
}: CardProps): ComponentChildren {
  return h(
    'section',
    { 'class': `card ${name}`, 'aria-label': title },
    h(
      'header',
      { class: 'card-head' },
      h('h2', null, title, count !== undefined && h('span', { class: 'count' }, String(count))),
      tools !== undefined && h('div', { class: 'tools' }, tools)
    ),
    children
  )
}

interface SearchProps {
  readonly label: string
  readonly value: string
  readonly onInput: (value: string) => void
}

export function Search({ label, value, onInput }: SearchProps): ComponentChildren {
  return h('input', {
    'class': 'input',
    'type': 'search',
    'aria-label': label,
    'placeholder': label,
    value,
    'spellcheck': false,
    'autocomplete': 'off',
    'onInput': event => onInput(event.currentTarget.value)
  })
}

interface SelectProps {
  readonly label: string
  readonly value: string
  readonly options: ReadonlyArray<readonly [value: string, text: string]>
  readonly onChange: (value: string) => void
}

export function Select({ label, value, options, onChange }: SelectProps): ComponentChildren {
  return h(
    'select',
    {
      'class': 'input',
      'aria-label': label,
      value,
      'onChange': ({ currentTarget }: { readonly currentTarget: HTMLSelectElement }) =>
        onChange(currentTarget.value)
    },
    options.map(([each, text]) => h('option', { key: each, value: each }, text))
  )
}
