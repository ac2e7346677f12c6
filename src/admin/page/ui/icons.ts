/** Icons as inline SVG: one path each, in the colour of the text. */
import { type ComponentChildren, h } from 'preact'

const paths = {
  now: 'M3 12h4l3-8 4 16 3-8h4',
  requests: 'M4 6h16M4 12h16M4 18h10',
  sessions:
    'M16 20v-1a4 4 0 0 0-4-4H7a4 4 0 0 0-4 4v1M9.5 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7' +
    'M21 20v-1a4 4 0 0 0-3-3.8M16 4.2a3.5 3.5 0 0 1 0 6.6',
  limits: 'M4 18a9 9 0 1 1 16 0M12 14l4-5',
  config: 'M4 7h10M18 7h2M4 17h2M10 17h10M14 4v6M6 14v6',
  maintenance:
    'M14.5 6.5a4.5 4.5 0 0 0-6 5.6L3 17.6 6.4 21l5.5-5.5a4.5 4.5 0 0 0 5.6-6l-3 3-2.9-2.9z',
  ledger: 'M5 4h11a3 3 0 0 1 3 3v13H8a3 3 0 0 1-3-3zM9 9h6M9 13h6',
  close: 'M6 6l12 12M18 6L6 18',
  out: 'M10 4H5v16h5M14 8l4 4-4 4M18 12H9',
  warn: 'M12 4l9 16H3zM12 10v4M12 17v.5',
  ok: 'M5 13l4 4L19 7',
  bad: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M9 9l6 6M15 9l-6 6'
} as const

export type IconName = keyof typeof paths

export function Icon({ name }: { readonly name: IconName }): ComponentChildren {
  return h(
    'svg',
    { 'class': 'icon', 'viewBox': '0 0 24 24', 'aria-hidden': 'true', 'focusable': 'false' },
    h('path', { d: paths[name] })
  )
}
