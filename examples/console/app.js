/** The demo's console: sign-in, profile, notices and orders. */
import { call, isSignedOut } from './api.js'
import { button, dateText, element, failureText, named } from './dom.js'
import { watchSession } from './expiry.js'

const app = document.getElementById('app')
const watch = watchSession({ signOut, onEnded: showLogin })
let view = new AbortController()

/** Asks who is signed in, and shows their page or the sign-in. */
async function open(unkept = '') {
  view.abort()
  view = new AbortController()
  const { signal } = view
  const answer = await call('/api/account/profile', { signal })
  if (signal.aborted) return
  if (answer.ok) return showOverview(answer.data, signal)
  if (!isSignedOut(answer)) return showError(answer)
  // That nobody has signed in yet needs no explanation.
  showLogin(answer.code === 'session.none' ? { ...answer, message: unkept } : answer)
}

function show(path, title, ...nodes) {
  if (location.pathname !== path) history.replaceState(null, '', path)
  document.title = `${title} · Console`
  app.replaceChildren(...nodes)
  app.querySelector('[data-focus], h1')?.focus()
}

const heading = text => element('h1', { tabindex: -1 }, text)
const alert = (name, ...content) =>
  element('p', { ...named(name), class: 'alert', role: 'alert' }, ...content)

function showError(failure) {
  const retry = button('retry', 'Retry', () => open())
  show(
    location.pathname,
    'Not available',
    element(
      'main',
      { ...named('page-error'), class: 'card small' },
      heading('The console is not available'),
      element('p', { role: 'alert' }, ...failureText(failure)),
      retry
    )
  )
}

/** @param failure why, where it was not the user's wish */
function showLogin(failure) {
  watch.stop()
  view.abort()
  const problem = alert('login-error')
  const field = (name, label, more) =>
    element(
      'label',
      {},
      label,
      element('input', {
        ...named(name),
        name,
        'required': true,
        'aria-describedby': 'login-error',
        ...more
      })
    )
  const username = field('username', 'User name', { 'autocomplete': 'username', 'data-focus': '' })
  const password = field('password', 'Password', {
    type: 'password',
    autocomplete: 'current-password'
  })
  const signIn = async () => {
    if (!form.reportValidity()) return
    problem.replaceChildren()
    const json = {
      username: username.lastChild.value,
      password: password.lastChild.value,
      type: 'account'
    }
    const answer = await call('/api/auth/admin/login', { method: 'POST', json })
    if (answer.ok) {
      return await open(
        'You signed in, but the browser did not keep the session: does it take cookies?'
      )
    }
    problem.replaceChildren(...failureText(answer))
    password.lastChild.select()
  }
  const form = element(
    'form',
    {},
    problem,
    username,
    password,
    button('sign-in', 'Sign in', signIn, { type: 'submit' })
  )
  show('/login', 'Sign in', element('main', { class: 'card small' }, heading('Sign in'), form))
  // Put in after the view is shown, so that it is read aloud.
  if (failure?.message) setTimeout(() => problem.replaceChildren(...failureText(failure)))
}

async function signOut() {
  const answer = await call('/api/account/logout', { method: 'POST' })
  if (!answer.ok && !isSignedOut(answer)) return answer
  showLogin()
  return undefined
}

function showOverview(profile, signal) {
  const problem = alert('sign-out-error')
  const leave = button('sign-out', 'Sign out', async () => {
    const failure = await signOut()
    if (failure !== undefined) problem.replaceChildren(...failureText(failure))
  })
  show(
    '/',
    'Overview',
    element(
      'header',
      {},
      element('strong', {}, 'Console'),
      element('span', {}, profile.name),
      leave
    ),
    element(
      'main',
      {},
      problem,
      heading(`Hello, ${profile.name}`),
      profileCard(profile),
      part('notices', 'Notices', '/api/notices', noticeList, signal),
      part('orders', 'Orders', '/api/orders', orderTable, signal)
    )
  )
  watch.start()
}

function profileCard({ name, role, email, title, group }) {
  const facts = Object.entries({ Email: email, Title: title, Group: group })
  return element(
    'section',
    { ...named('profile'), class: 'card' },
    element('h2', named('profile-name'), name),
    element('p', named('profile-role'), role),
    ...facts.map(([label, value]) => element('p', {}, `${label}: ${value}`))
  )
}

/** A section that asks for a list and shows it; it fails by itself. */
function part(name, title, path, render, signal) {
  const content = element('div', {}, element('p', { role: 'status' }, 'Loading…'))
  const load = async () => {
    const answer = await call(path, { signal })
    if (signal.aborted) return
    if (answer.ok) return content.replaceChildren(render(answer.data))
    if (isSignedOut(answer)) return showLogin(answer)
    // A role that may not see this is no error: nothing is broken.
    const isForbidden = answer.status === 403
    content.replaceChildren(
      ...(isForbidden
        ? [element('p', named(`${name}-forbidden`), answer.message)]
        : [
            alert(`${name}-error`, ...failureText(answer)),
            button(`${name}-retry`, 'Try again', load)
          ])
    )
  }
  void load()
  return element('section', { class: 'card' }, element('h2', {}, title), content)
}

function noticeList(notices) {
  const items = notices.map(({ title, description, datetime, type, read }) =>
    element(
      'li',
      { 'data-testid': 'notice', 'class': read ? '' : 'unread' },
      element('h3', {}, title),
      element('p', {}, description),
      element('small', {}, `${read ? '' : 'Unread · '}${type} · ${dateText(datetime)}`)
    )
  )
  return element('ul', named('notices'), ...items)
}

function orderTable(orders) {
  const cells = (tag, texts) => texts.map(text => element(tag, {}, text))
  const money = (amount, currency) =>
    new Intl.NumberFormat('en', { style: 'currency', currency }).format(amount)
  const rows = orders.map(({ orderNo, customer, amount, currency, state, placedAt }) =>
    element(
      'tr',
      { 'data-testid': 'order' },
      ...cells('td', [orderNo, customer, money(amount, currency), state, dateText(placedAt)])
    )
  )
  const head = element('tr', {}, ...cells('th', ['Order', 'Customer', 'Amount', 'State', 'Placed']))
  return element(
    'table',
    named('orders'),
    element('thead', {}, head),
    element('tbody', {}, ...rows)
  )
}

void open()
