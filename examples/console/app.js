/** Starts the page, and decides by address and session which view is shown. */
import { call, isSignedOut } from './api.js'
import { watchSession } from './expiry.js'
import { loginView } from './login.js'
import { nameOf, overviewContent } from './overview.js'
import { errorView, frame, loadingView, notFoundContent } from './panels.js'
/** @import { Failure } from './api.js' */

const loginPath = '/login'
const app = /** @type {HTMLElement} */ (document.getElementById('app'))

/** Who is signed in, as far as the page knows. @type {Record<string, unknown> | undefined} */
let profile
let view = new AbortController()
let shownPath = ''
const watch = watchSession({ signOut, onEnded: failure => openLogin(failure) })

/**
 * Shows what belongs to the address now. The profile is asked for once; whoever has none is led to the sign-in page.
 * @param {string} [unkept] what to say if there is still no session
 * @returns {Promise<void>}
 */
async function open(unkept = '') {
  view.abort()
  view = new AbortController()
  const { signal } = view
  shownPath = location.pathname
  if (profile === undefined) {
    const answer = await call('/api/account/profile', { signal })
    if (signal.aborted) return
    if (!answer.ok) return isSignedOut(answer) ? openLogin(answer, unkept) : showError(answer)
    profile = typeof answer.data === 'object' && answer.data !== null ? answer.data : {}
    watch.start()
  }
  if (location.pathname === loginPath) return openAt(wantedAddress())
  showPage(profile ?? {}, signal)
}

function showPage(/** @type {Record<string, unknown>} */ who, /** @type {AbortSignal} */ signal) {
  const isOverview = location.pathname === '/'
  const leave = (/** @type {Failure} */ failure) => {
    if (!isSignedOut(failure)) return false
    openLogin(failure)
    return true
  }
  const content = isOverview
    ? overviewContent({ profile: who, signal, isSignedOut: leave })
    : notFoundContent()
  show(isOverview ? 'Overview' : 'Not found', ...frame(nameOf(who), { signOut }, content))
}

function showError(/** @type {Failure} */ failure) {
  show(
    'Not available',
    errorView(failure, () => {
      show('Loading', loadingView())
      void open()
    })
  )
}

/**
 * The address that was wanted stays in the sign-in page's own, so that it outlives a reload.
 * @param {Failure} [failure] why, if it was not the user's wish
 * @param {string} [unkept]
 */
function openLogin(failure, unkept = '') {
  watch.stop()
  view.abort()
  view = new AbortController()
  const wasSignedIn = profile !== undefined
  profile = undefined
  if (location.pathname !== loginPath) {
    const wanted = location.pathname + location.search + location.hash
    history.replaceState(
      null,
      '',
      failure === undefined || wanted === '/'
        ? loginPath
        : `${loginPath}?${new URLSearchParams({ redirect: wanted })}`
    )
  }
  shownPath = location.pathname
  // That nobody has signed in yet needs no explanation.
  const reason =
    failure === undefined || (failure.code === 'session.none' && !wasSignedIn)
      ? unkept
      : failure.message
  show(
    'Sign in',
    loginView({
      reason,
      onSignedIn: () =>
        open(
          'You signed in, but the browser did not keep the session. Check that it accepts cookies from this site.'
        )
    })
  )
}

async function signOut() {
  const answer = await call('/api/account/logout', { method: 'POST' })
  if (!answer.ok && !isSignedOut(answer)) return answer
  history.pushState(null, '', loginPath)
  openLogin()
  return undefined
}

/** Only an address of this page: a link to the sign-in page must not lead elsewhere. */
function wantedAddress() {
  const wanted = new URLSearchParams(location.search).get('redirect') ?? '/'
  const target = URL.canParse(wanted, location.origin)
    ? new URL(wanted, location.origin)
    : new URL('/', location.origin)
  return target.origin === location.origin && target.pathname !== loginPath ? target.href : '/'
}

function openAt(/** @type {string} */ address) {
  history.replaceState(null, '', address)
  return open()
}

function show(/** @type {string} */ title, /** @type {Node[]} */ ...nodes) {
  const isFirst = document.title === 'Console'
  document.title = `${title} · Console`
  app.replaceChildren(...nodes)
  const target = app.querySelector('[data-focus]') ?? (isFirst ? null : app.querySelector('h1'))
  if (target instanceof HTMLElement) target.focus()
}

document.addEventListener('click', event => {
  const link = event.target instanceof Element ? event.target.closest('a') : null
  const isPlain =
    event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey
  if (
    link === null ||
    !isPlain ||
    event.defaultPrevented ||
    link.origin !== location.origin ||
    link.hash !== ''
  ) {
    return
  }
  event.preventDefault()
  if (link.href !== location.href) history.pushState(null, '', link.href)
  void open()
})

// Also fires for jumps within the page.
window.addEventListener('popstate', () => {
  if (location.pathname !== shownPath) void open()
})

// Brought back from the browser's memory: who was signed in may be so no longer.
window.addEventListener('pageshow', event => {
  if (!event.persisted) return
  profile = undefined
  void open()
})

void open()
