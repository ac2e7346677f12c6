/** The differences of a revision to what runs, as lines of its files. */
import { type ComponentChildren, h } from 'preact'
import { useJson } from '../api.ts'
import type { RevisionAnswer, WrittenDiff } from '../api-types.ts'
import { t } from '../words.ts'
import { Empty, Shown } from '../ui/states.ts'

export function RevisionDiff({ number }: { readonly number: number }): ComponentChildren {
  const asked = useJson<RevisionAnswer>(`config/revisions/${number}`)
  return h(Shown<RevisionAnswer>, {
    asked,
    show: ({ changes, files }) => [
      changes.length === 0 && h(Empty, null, t('config.noDiff')),
      files.map(({ file, diff }) => h(FileDiff, { key: file, file, diff }))
    ]
  })
}

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
