/** How a file differs from what runs, as its lines. */
import { type ComponentChildren, h } from 'preact'
import type { WrittenDiff } from '../api-types.ts'

const toneOf: Readonly<Record<string, string>> = { '+': 'added', '-': 'removed', '@': 'muted' }

export function FileDiff({ file, diff }: WrittenDiff): ComponentChildren {
  return h(
    'figure',
    { class: 'diff' },
    h('figcaption', { class: 'mono' }, file),
    h(
      'pre',
      { 'tabIndex': 0, 'aria-label': file },
      diff
        .split('\n')
        .map((line, index) =>
          h('span', { key: index, class: toneOf[line[0] ?? ''] ?? '' }, `${line}\n`)
        )
    )
  )
}
