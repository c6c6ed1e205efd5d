//! Watching for a window under X11: the first top-level one that is large enough and was mapped, or grew so large, after the
//! watch began. Owns a connection of its own to the X server. Refuses to look at titles, which programs set later, and to
//! take a splash screen or a menu for a start.

use std::fmt;

use x11rb::connection::Connection as _;
use x11rb::errors::{ReplyError, ReplyOrIdError};
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ChangeWindowAttributesAux, ConnectionExt as _, EventMask, MapState, WindowClass,
};
use x11rb::rust_connection::RustConnection;

use super::StartupError;

/// Pixels of a window that is no dialogue's button and no splash of a logo, where nothing else is wanted.
const USUAL: (u16, u16) = (300, 200);

/// Which window is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowCondition {
    /// pixels across at least
    pub width: u16,
    /// pixels down at least
    pub height: u16,
    /// its class, or the name of its instance (`xprop WM_CLASS`); any where left out
    pub class: Option<String>,
}

impl Default for WindowCondition {
    fn default() -> Self {
        WindowCondition { width: USUAL.0, height: USUAL.1, class: None }
    }
}

impl WindowCondition {
    /// From `640x480`, or from a class.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let size = text
            .split_once('x')
            .and_then(|(width, height)| Some((width.parse::<u16>().ok()?, height.parse::<u16>().ok()?)));
        match size {
            Some((width, height)) => Some(WindowCondition { width, height, class: None }),
            None if text.is_empty() => None,
            None => Some(WindowCondition { class: Some(text.into()), ..WindowCondition::default() }),
        }
    }
}

impl fmt::Display for WindowCondition {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "a window of at least {}x{} pixels", self.width, self.height)?;
        self.class.as_ref().map_or(Ok(()), |class| write!(to, " and of class {class}"))
    }
}

/// A connection that hears of every top-level window.
pub(super) struct WindowWatch {
    connection: RustConnection,
    wanted: WindowCondition,
    kind: Atom,
    splash: Atom,
}

impl WindowWatch {
    /// Listens, from now on, to the server that DISPLAY names.
    pub(super) fn listen(wanted: &WindowCondition) -> Result<Self, StartupError> {
        let display = std::env::var("DISPLAY").unwrap_or_default();
        let refused = |reason: String| StartupError::Display { display: display.clone(), reason };
        let (connection, _) = x11rb::connect(None).map_err(|error| refused(error.to_string()))?;
        let (kind, splash) = subscribe_windows(&connection).map_err(|error| refused(error.to_string()))?;
        Ok(WindowWatch { connection, wanted: wanted.clone(), kind, splash })
    }

    /// Waits until it is there; `false` where the server went away before.
    pub(super) fn wait_for_window(&self) -> bool {
        while let Ok(event) = self.connection.wait_for_event() {
            let window = match event {
                Event::MapNotify(mapped) => mapped.window,
                Event::ConfigureNotify(configured) => configured.window,
                _ => continue,
            };
            // A window that is gone again was no start.
            if self.is_wanted(window).unwrap_or(false) {
                return true;
            }
        }
        false
    }

    fn is_wanted(&self, window: u32) -> Result<bool, ReplyError> {
        let (attributes, size) =
            (self.connection.get_window_attributes(window)?, self.connection.get_geometry(window)?);
        let kind = self.connection.get_property(false, window, self.kind, AtomEnum::ATOM, 0, 32)?.reply()?;
        let (attributes, size) = (attributes.reply()?, size.reply()?);
        let is_shown = attributes.map_state == MapState::VIEWABLE
            && attributes.class == WindowClass::INPUT_OUTPUT
            && !attributes.override_redirect;
        let is_splash = kind.value32().is_some_and(|mut kinds| kinds.any(|kind| kind == self.splash));
        let is_large = size.width >= self.wanted.width && size.height >= self.wanted.height;
        Ok(is_shown && is_large && !is_splash && self.has_class(window)?)
    }

    /// Whether the window, or the one that a window manager's frame holds, has the wanted class.
    fn has_class(&self, window: u32) -> Result<bool, ReplyError> {
        let Some(wanted) = &self.wanted.class else { return Ok(true) };
        let inner = self.connection.query_tree(window)?.reply()?.children;
        for window in std::iter::once(window).chain(inner) {
            let asked =
                self.connection.get_property(false, window, AtomEnum::WM_CLASS, AtomEnum::STRING, 0, 256)?;
            let names = asked.reply()?.value;
            if names.split(|byte| *byte == 0).any(|name| name == wanted.as_bytes()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Asks to be told of windows on every screen; returns the atoms by which a splash screen is known.
fn subscribe_windows(connection: &RustConnection) -> Result<(Atom, Atom), ReplyOrIdError> {
    let listen = ChangeWindowAttributesAux::new().event_mask(EventMask::SUBSTRUCTURE_NOTIFY);
    for screen in &connection.setup().roots {
        connection.change_window_attributes(screen.root, &listen)?.check()?;
    }
    let atom = |name: &[u8]| Ok::<_, ReplyOrIdError>(connection.intern_atom(false, name)?.reply()?.atom);
    Ok((atom(b"_NET_WM_WINDOW_TYPE")?, atom(b"_NET_WM_WINDOW_TYPE_SPLASH")?))
}
