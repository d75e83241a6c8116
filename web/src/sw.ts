// The service worker: keeps the page's own files for when the machine can't be
// reached, and shows notices. It never keeps an answer of the API.
/// <reference lib="webworker" />

const worker = self as unknown as ServiceWorkerGlobalScope;
const files = '__SHELL__' as unknown as string[]; // put in when the page is built
const shell = ['/', '/manifest.webmanifest', '/icon.svg', ...files];
const cacheName = 'bawn ' + files.join(' ');

worker.addEventListener('install', (event) => {
  event.waitUntil(
    caches.open(cacheName).then(async (cache) => {
      await cache.addAll(shell.map((path) => new Request(path, { cache: 'reload' })));
      await worker.skipWaiting();
    }),
  );
});

worker.addEventListener('activate', (event) => {
  event.waitUntil(
    caches.keys().then(async (names) => {
      await Promise.all(names.filter((name) => name !== cacheName).map((name) => caches.delete(name)));
      await worker.clients.claim();
    }),
  );
});

worker.addEventListener('fetch', (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== 'GET' || url.origin !== worker.location.origin) return;
  if (request.mode === 'navigate') event.respondWith(fetch(request).catch(async () => (await caches.match('/')) ?? Response.error()));
  else if (files.includes(url.pathname)) event.respondWith(caches.match(url.pathname).then((kept) => kept ?? fetch(request)));
});

worker.addEventListener('push', (event) => {
  const notice = read(event.data);
  event.waitUntil(worker.registration.showNotification(notice.title, { body: notice.body, tag: notice.tag, icon: '/icon-192.png', data: notice.url }));
});

function read(data: PushMessageData | null): { title: string; body: string; tag: string; url: string } {
  let from: Record<string, unknown> = {};
  try {
    from = (data?.json() ?? {}) as Record<string, unknown>;
  } catch {
    // a notice that can't be read still says that something waits
  }
  const text = (name: string, other: string) => (typeof from[name] === 'string' ? from[name] : other);
  return { title: text('title', 'Bawn'), body: text('body', 'A question waits for you'), tag: text('tag', 'bawn'), url: text('url', '/#approvals') };
}

worker.addEventListener('notificationclick', (event) => {
  event.notification.close();
  const url = new URL(String(event.notification.data ?? '/'), worker.location.origin);
  if (url.origin !== worker.location.origin) return;
  event.waitUntil(show(url.href));
});

async function show(url: string): Promise<void> {
  for (const client of await worker.clients.matchAll({ type: 'window' })) {
    await client.focus();
    await client.navigate(url).catch(() => null);
    return;
  }
  await worker.clients.openWindow(url);
}
