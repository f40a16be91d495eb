//! The command list: what a command is, and all of them.

use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::{Config, TS, TypeVisitor};

use engine_base::Code;

use super::Schemas;
use super::{
    Desk, app, cluster, draw, export, models, project, proxy, queue, relink, render, settings,
    story, takes,
};
use crate::error::StudioError;

/// What a command does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum CommandKind {
    /// Changes a project; can be undone.
    Edit,
    /// Puts work into the queue; can be cancelled, is never undone.
    Job,
    /// Looks or keeps house.
    System,
}

impl CommandKind {
    /// Its name as written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Edit => "edit",
            Self::Job => "job",
            Self::System => "system",
        }
    }
}

/// No arguments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct NoArgs {}

/// It is done; there is nothing to say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Done {}

/// Types that a shell in another language needs.
#[derive(Debug, Default)]
pub(super) struct Declarations {
    /// Their declarations, by name.
    pub(super) types: BTreeMap<String, String>,
    /// What was looked at: types may name themselves.
    seen: BTreeSet<TypeId>,
}

type Run = Box<dyn Fn(&Desk, Value) -> Result<Value, StudioError> + Send + Sync>;

/// One command of the list.
pub struct CommandEntry {
    /// Its name: `page.verb`.
    pub name: &'static str,
    /// What it does to the world.
    pub kind: CommandKind,
    /// What it does, for people.
    pub docs: &'static str,
    args: fn(&Config) -> String,
    result: fn(&Config) -> String,
    declare: fn(&Config, &mut Declarations),
    declare_args: fn(&Config, &mut Declarations),
    run: Run,
}

impl CommandEntry {
    /// A command carried out by `run`.
    pub(super) fn new<A, R>(
        name: &'static str,
        kind: CommandKind,
        docs: &'static str,
        run: impl Fn(&Desk, A) -> Result<R, StudioError> + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + TS + 'static,
        R: Serialize + TS + 'static,
    {
        Self {
            name,
            kind,
            docs,
            args: A::name,
            result: R::name,
            declare: |config, found| {
                declare::<A>(config, found);
                declare::<R>(config, found);
            },
            declare_args: declare::<A>,
            run: Box::new(move |desk, args| {
                let args = serde_json::from_value(args).map_err(|error| {
                    let message = format!("cannot read the arguments of {name}: {error}");
                    StudioError::new(Code::BadInput, message)
                })?;
                let result = run(desk, args)?;
                serde_json::to_value(result).map_err(|error| {
                    let message = format!("cannot write the result of {name}: {error}");
                    StudioError::new(Code::Internal, message)
                })
            }),
        }
    }

    /// Its arguments in TypeScript, with everything that they name.
    pub fn arguments_in_typescript(&self) -> String {
        let config = Config::new().with_large_int("number");
        let mut found = Declarations::default();
        (self.declare_args)(&config, &mut found);
        let types: Vec<&str> = found.types.values().map(String::as_str).collect();
        format!("// arguments: {}\n{}", self.args(&config), types.join("\n"))
    }

    /// Whether it only looks.
    pub fn is_query(&self) -> bool {
        let verb = self.name.rsplit('.').next().unwrap_or_default();
        let looks = [
            "state", "recent", "find", "get", "list", "log", "plan", "predict", "presets", "text",
            "read", "voices", "line", "doctor",
        ];
        self.kind == CommandKind::System && looks.contains(&verb)
    }

    /// Whether it takes away what undo does not bring back.
    pub fn destroys(&self) -> bool {
        let gone = [
            "models.remove",
            "cache.prune",
            "queue.clear",
            "queue.cancel",
            "project.forget_snapshot",
            "proposal.refuse",
        ];
        gone.contains(&self.name)
    }

    /// Schemas of its arguments and of its result.
    pub(crate) fn schemas(&self, all: &Schemas) -> Result<(Value, Value), String> {
        let config = Config::new().with_large_int("number");
        Ok((
            all.object(&self.args(&config))?,
            all.object(&self.result(&config))?,
        ))
    }

    /// Whether what it gives is an object always.
    pub(crate) fn gives_object(&self, all: &Schemas) -> bool {
        all.is_always_object(&self.result(&Config::new().with_large_int("number")))
    }

    /// Name of its arguments' type in TypeScript.
    pub(super) fn args(&self, config: &Config) -> String {
        (self.args)(config)
    }

    /// Name of its result's type in TypeScript.
    pub(super) fn result(&self, config: &Config) -> String {
        (self.result)(config)
    }

    /// Add the types that it names.
    pub(super) fn declare(&self, config: &Config, found: &mut Declarations) {
        (self.declare)(config, found);
    }

    /// Carry it out.
    pub(super) fn run(&self, desk: &Desk, args: Value) -> Result<Value, StudioError> {
        (self.run)(desk, args)
    }
}

impl std::fmt::Debug for CommandEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandEntry")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// Add the declaration of `T` and of everything that it names.
pub(super) fn declare<T: TS + 'static + ?Sized>(config: &Config, found: &mut Declarations) {
    struct Each<'a>(&'a Config, &'a mut Declarations);
    impl TypeVisitor for Each<'_> {
        fn visit<T: TS + 'static + ?Sized>(&mut self) {
            declare::<T>(self.0, self.1);
        }
    }
    if !found.seen.insert(TypeId::of::<T>()) {
        return;
    }
    if T::output_path().is_some() {
        let name = T::ident(config);
        let text = format!(
            "{}export {}\n",
            T::docs().unwrap_or_default(),
            T::decl(config)
        );
        found.types.insert(name, text);
    }
    T::visit_dependencies(&mut Each(config, found));
    T::visit_generics(&mut Each(config, found));
}

/// Every command, in the order in which pages use them.
pub fn all() -> Vec<CommandEntry> {
    let pages = [
        app::commands(),
        project::commands(),
        story::commands(),
        render::commands(),
        takes::commands(),
        draw::commands(),
        queue::commands(),
        models::commands(),
        cluster::commands(),
        export::commands(),
        proxy::commands(),
        relink::commands(),
        settings::commands(),
    ];
    pages.into_iter().flatten().collect()
}
