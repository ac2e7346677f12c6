/** Texts of the panel Maintenance. */

export const maintenanceTexts = {
  'maintenance.title': 'Maintenance',
  'maintenance.alone':
    'Without Redis, maintenance begun here closes this process alone, until it restarts.',
  'maintenance.byPage': 'Begun by operators',
  'maintenance.byFile': 'In routes.yaml',
  'maintenance.on': 'on',
  'maintenance.off': 'off',
  'maintenance.noneByPage': 'Operators closed nothing.',
  'maintenance.noneByFile': 'The file closes nothing.',
  'maintenance.routes': 'Routes',
  'maintenance.allRoutes': 'all routes',
  'maintenance.methods': 'Methods',
  'maintenance.roles': 'Open for the roles',
  'maintenance.until': 'Ends',
  'maintenance.message': 'Message',
  'maintenance.author': 'By',
  'maintenance.since': 'Begun',
  'maintenance.begin': 'Begin maintenance',
  'maintenance.beginText':
    'Until {time} users of the console get 503 with your message: at all replicas, over restarts.',
  'maintenance.for': 'For',
  'maintenance.minutes': '{n:minute|minutes}',
  'maintenance.scope': 'Closes',
  'maintenance.everything': 'everything',
  'maintenance.readOnly': 'changes only (read-only mode)',
  'maintenance.messageForUsers': 'Message for users',
  'maintenance.end': 'End maintenance',
  'maintenance.endText': 'Opens again what operators closed. What routes.yaml closes stays closed.',
  'undo.maintenance.begin': 'End it here at any time; otherwise it ends by itself.',
  'undo.maintenance.end': 'Begin it again.'
} as const
