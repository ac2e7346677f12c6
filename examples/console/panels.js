/** What several views share: the frame around a signed-in page, and the ways to say that something is missing. */
import { element, named } from './dom.js'
/** @import { Child } from './dom.js' */
/** @import { Failure } from './api.js' */

/** The view's heading takes the focus when the view comes into being. */
export const heading = (/** @type {string} */ text) => element('h1', { tabindex: -1 }, text)

export const brand = () =>
  element(
    'span',
    { class: 'brand' },
    element('img', { src: '/favicon.svg', alt: '', width: 28, height: 28 }),
    'Console'
  )

/**
 * @param {string} userName
 * @param {{ signOut: () => Promise<Failure | undefined> }} actions signOut resolves with what went wrong, if anything did
 * @param {Child[]} content
 */
export function frame(userName, { signOut }, ...content) {
  const button = element(
    'button',
    { ...named('sign-out'), type: 'button', class: 'quiet' },
    'Sign out'
  )
  const problem = element('p', { ...named('sign-out-error'), class: 'alert wide', role: 'alert' })
  let isBusy = false
  const press = async () => {
    if (isBusy) return
    isBusy = true
    setBusy(button, 'Signing out…')
    problem.replaceChildren()
    const failure = await signOut()
    isBusy = false
    setIdle(button, 'Sign out')
    if (failure !== undefined) {
      problem.replaceChildren(
        `You may still be signed in. ${failure.message}`,
        ...reference(failure)
      )
    }
  }
  button.addEventListener('click', () => {
    void press()
  })
  return [
    element('a', { class: 'skip', href: '#content' }, 'Skip to content'),
    element(
      'header',
      { class: 'bar' },
      element('a', { 'href': '/', 'class': 'home', 'aria-label': 'Console, overview' }, brand()),
      element('span', { class: 'who' }, userName),
      button
    ),
    element('main', { id: 'content', tabindex: -1 }, problem, ...content)
  ]
}

export function setBusy(/** @type {HTMLButtonElement} */ button, /** @type {string} */ label) {
  // Not `disabled`: that would take the focus away from whoever pressed it.
  button.setAttribute('aria-disabled', 'true')
  button.classList.add('busy')
  button.textContent = label
}

export function setIdle(/** @type {HTMLButtonElement} */ button, /** @type {string} */ label) {
  button.removeAttribute('aria-disabled')
  button.classList.remove('busy')
  button.textContent = label
}

/** The request id, where there is one. */
export function reference(/** @type {Failure} */ { requestId }) {
  return requestId === ''
    ? []
    : [element('span', { class: 'reference' }, 'Request id ', element('code', {}, requestId))]
}

export const loadingView = () =>
  element(
    'main',
    { class: 'center' },
    element('p', { class: 'loading', role: 'status' }, 'Loading…')
  )

/** For everything that is no answer about the session: the user may well be signed in, so no sign-in page. */
export function errorView(/** @type {Failure} */ failure, /** @type {() => void} */ retry) {
  const button = element('button', { ...named('retry'), type: 'button' }, 'Retry')
  button.addEventListener('click', retry)
  return element(
    'main',
    { class: 'center' },
    element(
      'section',
      { ...named('page-error'), class: 'card panel' },
      heading('The console is not available'),
      element('p', { role: 'alert' }, failure.message),
      element('p', {}, ...reference(failure)),
      button
    )
  )
}

export function notFoundContent() {
  return element(
    'section',
    { ...named('not-found'), class: 'card panel' },
    heading('There is no such page'),
    element('p', {}, 'The address may be mistyped, or the page has moved.'),
    element('p', {}, element('a', { href: '/', class: 'button' }, 'Go to the overview'))
  )
}

/**
 * A section's own failure: the rest of the page goes on.
 * @param {string} name
 * @param {Failure} failure
 * @param {() => void} retry
 */
export function sectionError(name, failure, retry) {
  const button = element(
    'button',
    { ...named(`${name}-retry`), type: 'button', class: 'quiet' },
    'Try again'
  )
  button.addEventListener('click', retry)
  return element(
    'div',
    { ...named(`${name}-error`), class: 'alert', role: 'alert' },
    element('p', {}, failure.message, ...reference(failure)),
    button
  )
}
