/** The sign-in view. */
import { call } from './api.js'
import { element, named, waitText } from './dom.js'
import { brand, heading, reference, setBusy, setIdle } from './panels.js'
/** @import { Failure } from './api.js' */

/**
 * @param {object} options
 * @param {string} options.reason why there is a sign-in page, where the user did not ask for it
 * @param {() => Promise<void>} options.onSignedIn
 */
export function loginView({ reason, onSignedIn }) {
  const described = {
    'required': true,
    'autocapitalize': 'none',
    'spellcheck': 'false',
    'aria-describedby': 'login-error'
  }
  const username = element('input', {
    ...named('username'),
    ...described,
    name: 'username',
    autocomplete: 'username',
    maxlength: 255
  })
  const password = element('input', {
    ...named('password'),
    ...described,
    name: 'password',
    type: 'password',
    autocomplete: 'current-password',
    maxlength: 1024
  })
  const autoLogin = element('input', {
    ...named('auto-login'),
    name: 'auto-login',
    type: 'checkbox'
  })
  const button = element('button', { ...named('sign-in'), type: 'submit' }, 'Sign in')
  const problem = element('p', { ...named('login-error'), class: 'alert', role: 'alert' })
  const form = element(
    'form',
    { class: 'stack' },
    problem,
    element(
      'div',
      { class: 'field' },
      element('label', { for: 'username' }, 'User name'),
      username
    ),
    element('div', { class: 'field' }, element('label', { for: 'password' }, 'Password'), password),
    element('label', { class: 'check' }, autoLogin, 'Keep me signed in'),
    button
  )

  const showProblem = (/** @type {Failure} */ failure) => {
    const wait =
      failure.retryAfter === undefined
        ? ''
        : ` You can try again in ${waitText(failure.retryAfter)}.`
    problem.replaceChildren(
      failure.message + wait,
      ...(failure.status < 500 ? [] : reference(failure))
    )
    if (failure.status !== 401 && failure.code !== 'login.refused') return
    for (const input of [username, password]) input.setAttribute('aria-invalid', 'true')
    password.focus()
    password.select()
  }

  let isBusy = false
  const signIn = async () => {
    if (isBusy) return
    isBusy = true
    setBusy(button, 'Signing in…')
    problem.replaceChildren()
    for (const input of [username, password]) input.removeAttribute('aria-invalid')
    const answer = await call('/api/auth/admin/login', {
      method: 'POST',
      json: {
        username: username.value,
        password: password.value,
        type: 'account',
        autoLogin: autoLogin.checked
      }
    })
    if (answer.ok) await onSignedIn()
    else showProblem(answer)
    isBusy = false
    setIdle(button, 'Sign in')
  }
  form.addEventListener('submit', event => {
    event.preventDefault()
    void signIn()
  })

  // Put in after the view is shown, so that it is read aloud.
  if (reason !== '') setTimeout(() => problem.replaceChildren(reason))
  username.dataset['focus'] = ''
  return element(
    'main',
    { class: 'center' },
    element('section', { class: 'card panel' }, brand(), heading('Sign in'), form)
  )
}
