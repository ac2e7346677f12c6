/** The options of `init`: each question has one. */
import { type Option, passwordEnvOption } from '../command.ts'

const text = (value: string, description: string): Option => ({
  type: 'string',
  value,
  description
})

export const options: Readonly<Record<string, Option>> = {
  'console': text('DIR-OR-PRESET', 'the folder of the console’s built files, a preset, or none'),
  'console-preset': text('PRESET', 'the preset of the console in that folder (default: none)'),
  'backend-url': text('URL', 'the URL of the back-end'),
  'backend': text('PRESET', 'the preset of the back-end; unknown: init looks for itself (default)'),
  'sign-in': text('WHERE', 'who vouches for users: backend (default), or file (users.yaml)'),
  'login-path': text('PATH', 'the back-end’s sign-in (POST)'),
  'login-fields': text('NAMES', 'members of its body: username,password (default), and NAME=VALUE'),
  'login-format': text('FORMAT', 'json (default) or form'),
  'user': text('NAME', 'an account of the back-end, or the first user of the users file'),
  'password-env': passwordEnvOption,
  'token-header': text('HEADER', 'the header that takes the token, such as x-api-token'),
  'user-path': text('PATH', 'the GET call that tells who the user is'),
  'logout-path': text('CALL', 'the back-end’s sign-out: PATH (POST), or "DELETE PATH"'),
  'error-path': text('PATH', 'the text in the body of an error, such as err.text'),
  'header': {
    ...text('HEADER', 'a header that the back-end always wants, such as "tenant-id: 1"'),
    multiple: true
  },
  'route': {
    ...text('PATH', 'a GET path that the console needs; PUBLIC=PATH for another name'),
    multiple: true
  },
  'allow-plain-http': {
    type: 'boolean',
    description: 'send the password over http to another machine'
  },
  'yes': { type: 'boolean', short: 'y', description: 'write without asking' }
}
