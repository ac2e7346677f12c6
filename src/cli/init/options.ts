/** The options of `init`: each question has one. */
import type { CliCommand } from '../cli-command.ts'

export function addInitOptions(command: CliCommand): CliCommand {
  return command
    .option('--console <dir-or-preset>', 'the folder of its built files, a preset, or none')
    .option('--console-preset <preset>', 'the preset of the console in that folder (default: none)')
    .option('--backend-url <url>', 'the URL of the back-end')
    .option('--backend <preset>', 'its preset; unknown: init looks for itself (default)')
    .option('--sign-in <where>', 'who vouches for users: backend (default), or file (users.yaml)')
    .option('--login-path <path>', 'the back-end’s sign-in (POST)')
    .option('--login-fields <names>', 'of its body: username,password (default), and NAME=VALUE')
    .option('--login-format <format>', 'json (default) or form')
    .option('--user <name>', 'an account of the back-end, or the first user of the users file')
    .passwordEnv()
    .option('--token-header <header>', 'the header that takes the token, such as x-api-token')
    .option('--user-path <path>', 'the GET call that tells who the user is')
    .option('--logout-path <call>', 'the back-end’s sign-out: PATH (POST), or "DELETE PATH"')
    .option('--error-path <path>', 'the text in the body of an error, such as err.text')
    .repeatable('--header <header>', 'one that the back-end always wants, such as "tenant-id: 1"')
    .repeatable('--route <path>', 'a GET path that the console needs; PUBLIC=PATH to rename it')
    .option('--allow-plain-http', 'send the password over http to another machine')
    .option('-y, --yes', 'write without asking')
}
