/** The frame around the panels: navigation, connection, operator. */
import { type ComponentChildren, type ComponentType, h } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { type ApiError, getJson, operator, type Operator, postJson } from './api.ts'
import { formatTime } from './format.ts'
import { t } from './words.ts'
import { live, pauseLiveWhileHidden, startLive, stopLive } from './live.ts'
import { ConfigPanel } from './panels/config.ts'
import { LimitsPanel } from './panels/limits.ts'
import { MaintenancePanel } from './panels/maintenance.ts'
import { NowPanel } from './panels/now.ts'
import { RequestsPanel } from './panels/requests.ts'
import { SessionsPanel } from './panels/sessions.ts'
import { SignInDialog, SignInForm } from './sign-in.ts'
import { useStore } from './store.ts'
import { Acts } from './ui/confirm.ts'
import { Icon } from './ui/icons.ts'
import { Failed } from './ui/states.ts'

const panels = {
  now: NowPanel,
  requests: RequestsPanel,
  sessions: SessionsPanel,
  limits: LimitsPanel,
  config: ConfigPanel,
  maintenance: MaintenancePanel
} satisfies Readonly<Record<string, ComponentType>>

const retryMs = 2000

type PanelName = keyof typeof panels

const panelNames = Object.keys(panels) as PanelName[]

function panelOfAddress(): PanelName {
  const [name = ''] = location.hash.replace(/^#\/?/, '').split('?', 1)
  return panelNames.find(panel => panel === name) ?? 'now'
}

export function Page(): ComponentChildren {
  const signedIn = useStore(operator)
  const [hadSession, setHadSession] = useState(false)
  const failure = useWhoAmI()
  useEffect(pauseLiveWhileHidden, [])
  useEffect(() => {
    if (signedIn === null || signedIn === undefined) {
      stopLive()
      return
    }
    setHadSession(true)
    startLive()
  }, [signedIn])
  if (signedIn === undefined) {
    return failure === undefined
      ? h('p', { class: 'boot' }, 'Console Gateway…')
      : h(Entrance, null, h('h1', null, t('signIn.waiting')), h(Failed, { error: failure }))
  }
  if (signedIn === null && !hadSession) return h(SignInPage, null)
  return h(Shell, null, signedIn === null && h(SignInDialog, null))
}

/**
 * Asks who is signed in. A gateway that cannot say so has signed nobody out: it is asked again.
 * @returns why it cannot be said
 */
function useWhoAmI(): ApiError | undefined {
  const [failure, setFailure] = useState<ApiError | undefined>(undefined)
  useEffect(() => {
    const ask = () => {
      getJson<Operator>('me').then(
        me => operator.set(me),
        (error: ApiError) => {
          if (operator.get() !== undefined) return
          setFailure(error)
          setTimeout(ask, retryMs)
        }
      )
    }
    ask()
  }, [])
  return failure
}

function SignInPage(): ComponentChildren {
  return h(Entrance, null, h(SignInForm, { title: t('signIn.title') }))
}

function Entrance({ children }: { readonly children?: ComponentChildren }): ComponentChildren {
  return h('main', { class: 'sign-in-page' }, h(Brand, null), children)
}

function Brand(): ComponentChildren {
  return h(
    'p',
    { class: 'brand' },
    h('span', { 'class': 'mark', 'aria-hidden': 'true' }),
    'Console Gateway'
  )
}

function Shell({ children }: { readonly children?: unknown }): ComponentChildren {
  const [name, setName] = useState(panelOfAddress)
  const main = useRef<HTMLElement>(null)
  useEffect(() => {
    const onHash = () => {
      setName(panelOfAddress())
      main.current?.focus({ preventScroll: true })
      scrollTo(0, 0)
    }
    addEventListener('hashchange', onHash)
    return () => removeEventListener('hashchange', onHash)
  }, [])
  useEffect(() => {
    document
      .querySelector('nav [aria-current]')
      ?.scrollIntoView({ inline: 'center', block: 'nearest' })
  }, [name])
  useEffect(() => {
    document.title = `${t(`nav.${name}`)} · Console Gateway`
  })
  return h(
    'div',
    { class: 'shell' },
    h('a', { class: 'skip', href: '#content', onClick: skipTo(main) }, t('nav.skip')),
    h(
      'aside',
      { 'class': 'side', 'aria-label': 'Console Gateway' },
      h(Brand, null),
      h(Navigation, { name }),
      h('div', { class: 'side-foot' }, h(Connection, null), h(WhoAmI, null))
    ),
    h(
      'main',
      { id: 'content', ref: main, tabIndex: -1 },
      h(LostNotice, null),
      h(panels[name], null)
    ),
    h(Acts, null),
    children as ComponentChildren
  )
}

function skipTo(main: { readonly current: HTMLElement | null }) {
  return (event: Event) => {
    event.preventDefault()
    main.current?.focus()
  }
}

function Navigation({ name }: { readonly name: PanelName }): ComponentChildren {
  return h(
    'nav',
    { 'aria-label': t('nav.label') },
    h(
      'ul',
      null,
      panelNames.map(panel =>
        h(
          'li',
          { key: panel },
          h(
            'a',
            { href: `#/${panel}`, ...(panel === name && { 'aria-current': 'page' as const }) },
            h(Icon, { name: panel }),
            t(`nav.${panel}`)
          )
        )
      )
    )
  )
}

function Connection(): ComponentChildren {
  const { state } = useStore(live)
  return h(
    'p',
    { class: `connection ${state}`, role: 'status' },
    h('span', { 'class': 'dot', 'aria-hidden': 'true' }),
    t(`live.${state}`)
  )
}

function LostNotice(): ComponentChildren {
  const { state, lastAt } = useStore(live)
  const signedIn = useStore(operator)
  if (state !== 'lost' || signedIn === null) return null
  return h(
    'p',
    { class: 'notice warn', role: 'alert' },
    h(Icon, { name: 'warn' }),
    h('span', null, t('live.lostLong', { time: formatTime(lastAt) }))
  )
}

function WhoAmI(): ComponentChildren {
  const signedIn = useStore(operator)
  if (signedIn === null || signedIn === undefined) return null
  const signOut = () => {
    void postJson('sign-out', {}).then(
      () => location.reload(),
      () => location.reload()
    )
  }
  const { name, until } = signedIn
  return h(
    'p',
    { class: 'who' },
    h(
      'span',
      {
        class: 'who-name',
        ...(until !== undefined && { title: t('session.until', { time: formatTime(until) }) })
      },
      name
    ),
    h(
      'button',
      { type: 'button', class: 'button small', onClick: signOut },
      h(Icon, { name: 'out' }),
      t('signIn.out')
    )
  )
}
