/** The options of `init`. Whatever is missing is asked for at a terminal. */
import type { Option } from '../command.ts'
import { passwordEnvOption } from '../prompt.ts'

export const options: Readonly<Record<string, Option>> = {
  'console': {
    type: 'string',
    value: 'DIR-OR-PRESET',
    description: 'the folder of the console’s built files, a preset, or none'
  },
  'backend-url': { type: 'string', value: 'URL', description: 'the URL of the back-end' },
  'backend': {
    type: 'string',
    value: 'PRESET',
    description: 'the preset of the back-end; unknown: init looks for itself (default)'
  },
  'sign-in': {
    type: 'string',
    value: 'WHERE',
    description: 'who vouches for users: backend (its own sign-in) or file (users.yaml)'
  },
  'user': { type: 'string', value: 'NAME', description: 'the account that init signs in with' },
  'password-env': passwordEnvOption,
  'login-path': { type: 'string', value: 'PATH', description: 'the back-end’s sign-in (POST)' },
  'login-fields': {
    type: 'string',
    value: 'USER,PASSWORD',
    description: 'the members of its body (default: username,password)'
  },
  'login-extra': {
    type: 'string',
    value: 'JSON',
    description: 'further members of its body, such as {"client":"web"}'
  },
  'login-format': { type: 'string', value: 'FORMAT', description: 'json (default) or form' },
  'user-path': { type: 'string', value: 'PATH', description: 'the back-end’s user call (GET)' },
  'logout-path': { type: 'string', value: 'PATH', description: 'the back-end’s sign-out (POST)' },
  'header': {
    type: 'string',
    multiple: true,
    value: 'HEADER',
    description: 'a header that the back-end always wants, such as "tenant-id: 1"'
  },
  'route': {
    type: 'string',
    multiple: true,
    value: 'PATH',
    description: 'a GET path of the back-end that the console needs; PUBLIC=PATH for another name'
  },
  'allow-plain-http': {
    type: 'boolean',
    description: 'send the password over http to another machine'
  },
  'yes': { type: 'boolean', short: 'y', description: 'write without asking' }
}
