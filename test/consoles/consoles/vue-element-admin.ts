/** vue-element-admin. Its request layer is utils/request.js. Files are those of src. */
import { type ConsoleSpec, Fault, ShownFault } from '../console.ts'

export const vueElementAdmin: ConsoleSpec = {
  name: 'vue-element-admin',
  places: { token: { in: 'cookie', key: 'Admin-Token', as: 'text' } }, // utils/auth.js:3
  headers: ({ token }) => ({ 'X-Token': token }),
  isOk: body => body.code === 20000, // utils/request.js:49 and :69
  message: ({ message }) => message || 'Error',
  // utils/request.js:74-81: the body is not read.
  // .env.production:5, with the folder that each path of api/*.js begins with
  calls: {
    signIn: 'POST /prod-api/vue-element-admin/user/login',
    // api/user.js:11-17: the token stands in the query too.
    user: {
      at: 'GET /prod-api/vue-element-admin/user/info',
      query: (_, { token }) => ({ token })
    },
    list: 'GET /prod-api/vue-element-admin/article/list',
    save: 'POST /prod-api/vue-element-admin/article/create',
    // layout/components/Navbar.vue:77-80: only one that succeeded leads to the sign-in page.
    signOut: 'POST /prod-api/vue-element-admin/user/logout'
  },
  ifNotEntered: 'leaves',
  user: ({ user: { name, roles } }) => {
    if (roles && !Array.isArray(roles)) throw new Fault('roles.forEach is not a function')
    if (!roles?.length) throw new ShownFault('getInfo: roles must be a non-null array!')
    return { name, roles }
  },
  // store/modules/permission.js: the menu is in the console, by roles.
  paging: { page: 'page', size: 'limit' },
  table: ({ items, total }) => [items, total],
  // utils/request.js:57-68: the user presses "Re-Login", which sends nothing.
  ends: { on: ({ code }) => [50008, 50012, 50014].includes(code), by: 'leaving' }
}
